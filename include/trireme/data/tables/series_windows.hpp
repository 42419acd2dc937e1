#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/on_device.hpp"
#include "trireme/data/tables/table.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct SeriesWindowOptions {
  std::int64_t length = 0;   // rows that a model reads
  std::int64_t horizon = 1;  // rows after them, which it predicts; 0: none
  std::int64_t stride = 1;   // rows from the start of a window to that of the next
};

// Windows of a series, on the host as loaders give them (SeriesBatch), or on a GPU.
template <typename D>
struct BasicSeriesBatch {
  Tensor<float, D> x = {};        // [batch, length, features]
  Tensor<float, D> next = {};     // [batch, horizon, features]: the rows after x; undefined where the horizon is 0
  Tensor<float, D> targets = {};  // [batch, horizon, 1]: those of the rows after x; undefined where the table has none
  std::int64_t first_sample = 0;  // the number of the first window's sample

  std::int64_t size() const { return x.dim(0); }
};
using SeriesBatch = BasicSeriesBatch<Cpu>;

template <typename D>
BasicSeriesBatch<D> on_device(const SeriesBatch& loaded) {
  return {.x = on_device<D>(loaded.x),
          .next = on_device<D>(loaded.next),
          .targets = on_device<D>(loaded.targets),
          .first_sample = loaded.first_sample};
}

// The rows of a table, one after the other in time, as a dataset of windows for Loader and evaluation_batches:
//
//   const auto [training, test] = data::read_csv("load.csv", {.ignored = {"date"}}).split({.shuffle = false, .standardize =
//   true}); const data::Loader windows(data::SeriesWindows(training, {.length = 336, .horizon = 96}), run.batch());
//
// Window i starts at row i * stride.
class SeriesWindows {
 public:
  // Throws Error for a table that holds no window and the rows after it.
  SeriesWindows(Table rows, const SeriesWindowOptions& options);

  std::int64_t size() const { return size_; }
  const Table& table() const { return rows_; }
  const SeriesWindowOptions& options() const { return options_; }
  SeriesBatch collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

 private:
  Table rows_;
  SeriesWindowOptions options_;
  std::int64_t size_;
};

std::string content_of(const SeriesWindows& windows);  // of their table and options

}  // namespace data
}  // namespace trireme
