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
  std::int64_t length = 0;   // rows in a window, the model's input
  std::int64_t horizon = 1;  // rows after the window, which the model predicts; 0: none
  std::int64_t stride = 1;   // rows between the starts of neighbouring windows
};

// A batch of windows of a time series: on the host, as loaders return it (SeriesBatch), or on a GPU.
template <typename D>
struct BasicSeriesBatch {
  Tensor<float, D> x = {};        // [batch, length, features]
  Tensor<float, D> next = {};     // [batch, horizon, features]: the rows after x; undefined if the horizon is 0
  Tensor<float, D> targets = {};  // [batch, horizon, 1]: targets of the rows in next; undefined if there are none
  std::int64_t first_sample = 0;  // the sample number of the first window

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

// A dataset of windows over a table in which each row is one time step, for Loader and evaluation_batches:
//
//   const data::Table load = data::read_csv("load.csv", {.ignored = {"date"}});
//   const auto [training, test] = load.split({.shuffle = false, .standardize = true});
//   const data::Loader windows(data::SeriesWindows(training, {.length = 336, .horizon = 96}), run.batch());
//
// Window i starts at row i * stride.
class SeriesWindows {
 public:
  // Throws Error for a table with fewer than length + horizon rows.
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

std::string content_of(const SeriesWindows& windows);  // describes the table and the options

}  // namespace data
}  // namespace trireme
