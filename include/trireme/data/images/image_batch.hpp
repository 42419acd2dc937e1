#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/on_device.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The label of a row without an image, or of a pixel that does not count; cross_entropy ignores it.
inline constexpr std::int32_t no_label = -100;

// Images and their classes: on the host, as ImageLoader returns them (ImageBatch), or on a GPU. T is the master type of the
// model.
template <typename D, typename T = float>
struct BasicImageBatch {
  Tensor<T, D> images;             // [batch, height, width, channels]
  Tensor<std::int32_t, D> labels;  // [batch]
  std::int64_t first_sample = 0;   // the sample number of the first row
  std::int64_t valid = 0;          // the first `valid` rows hold samples, the other rows zeros and no_label

  // Defined for images mixed by Mixup or CutMix. The loss is cross_entropy against soft_labels, as in
  // models::classification_loss(). For each row this loss equals lambda * cross_entropy(labels) + (1 - lambda) *
  // cross_entropy(partner_labels).
  Tensor<std::int32_t, D> partner_labels = {};  // [batch]: the class of the image that was mixed in
  Tensor<T, D> lambda = {};                     // [batch]: the share of the row's own class
  Tensor<T, D> soft_labels = {};                // [batch, classes]: both shares; zeros in rows without a sample

  std::int64_t size() const { return images.dim(0); }
};
using ImageBatch = BasicImageBatch<Cpu>;

inline std::int64_t bytes_of(const ImageBatch& batch) {
  return bytes_of(batch.images) + bytes_of(batch.labels) + bytes_of(batch.partner_labels) + bytes_of(batch.lambda) +
         bytes_of(batch.soft_labels);
}

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
