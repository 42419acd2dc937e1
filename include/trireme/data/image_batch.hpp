#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/data/on_device.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The label of a row that holds no image: what cross_entropy ignores.
inline constexpr std::int32_t no_label = -100;

// Images and their classes, on the host as ImageLoader gives them (ImageBatch), or on a GPU. T: the master type of models that
// read them.
template <typename D, typename T = float>
struct BasicImageBatch {
  Tensor<T, D> images;             // [batch, height, width, channels]
  Tensor<std::int32_t, D> labels;  // [batch]
  std::int64_t first_sample = 0;   // the number of the first row's sample
  std::int64_t valid = 0;          // the rows that hold a sample, the first ones; the others are zeros with no_label
};
using ImageBatch = BasicImageBatch<Cpu>;

template <typename D>
BasicImageBatch<D> on_device(const ImageBatch& loaded) {
  return {.images = on_device<D>(loaded.images),
          .labels = on_device<D>(loaded.labels),
          .first_sample = loaded.first_sample,
          .valid = loaded.valid};
}

}  // namespace data
}  // namespace trireme
