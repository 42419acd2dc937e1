#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/on_device.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Rows of a table: on the host, as loaders return them (Rows), or on a GPU.
template <typename D>
struct BasicRows {
  Tensor<float, D> x = {};              // [rows, features]
  Tensor<std::int32_t, D> labels = {};  // [rows]: classes; undefined if the table has none
  Tensor<float, D> targets = {};        // [rows, 1]: numbers to predict; undefined if the table has none
  std::int64_t first_sample = 0;        // the sample number of the first row

  std::int64_t size() const { return x.dim(0); }
};
using Rows = BasicRows<Cpu>;

inline std::int64_t bytes_of(const Rows& batch) { return bytes_of(batch.x) + bytes_of(batch.labels) + bytes_of(batch.targets); }

template <typename D>
BasicRows<D> on_device(const Rows& loaded) {
  return {.x = on_device<D>(loaded.x),
          .labels = on_device<D>(loaded.labels),
          .targets = on_device<D>(loaded.targets),
          .first_sample = loaded.first_sample};
}

}  // namespace data
}  // namespace trireme
