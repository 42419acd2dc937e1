#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/on_device.hpp"
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

  // Of images mixed by Mixup or CutMix; otherwise undefined. The loss is cross_entropy against soft_labels, as
  // models::classification_loss() has it, or, row by row, lambda times that against labels + (1 - lambda) times that against
  // partner_labels.
  Tensor<std::int32_t, D> partner_labels = {};  // [batch]: the class of what was mixed in
  Tensor<T, D> lambda = {};                     // [batch]: the share that is of the row's own class
  Tensor<T, D> soft_labels = {};                // [batch, classes]: both shares, zeros where a row holds no sample

  std::int64_t size() const { return images.dim(0); }
};
using ImageBatch = BasicImageBatch<Cpu>;

template <typename D>
BasicImageBatch<D> on_device(const ImageBatch& loaded) {
  return {.images = on_device<D>(loaded.images),
          .labels = on_device<D>(loaded.labels),
          .first_sample = loaded.first_sample,
          .valid = loaded.valid,
          .partner_labels = on_device<D>(loaded.partner_labels),
          .lambda = on_device<D>(loaded.lambda),
          .soft_labels = on_device<D>(loaded.soft_labels)};
}

}  // namespace data
}  // namespace trireme
