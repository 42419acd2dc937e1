#pragma once

#include "trireme/autograd/composed/losses.hpp"
#include "trireme/core/export.hpp"
#include "trireme/data/images/image_batch.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

// The cross-entropy of logits [batch, classes] with the batch's soft_labels [batch, classes] if they are defined, as after
// Mixup and CutMix, otherwise with the batch's labels [batch]. A row with the label data::no_label is ignored, also with soft
// labels. A batch with soft labels may leave labels undefined. label_smoothing: the share of a target that is spread over all
// classes.
template <typename T, typename D>
Loss<Accumulate<T>, D> classification_loss(const Variable<T, D>& logits, const data::BasicImageBatch<D, Accumulate<T>>& batch,
                                           double label_smoothing = 0) {
  if (!batch.soft_labels.defined()) return cross_entropy(logits, batch.labels, {.label_smoothing = label_smoothing});
  require(batch.soft_labels.shape() == logits.shape(),
          "the batch has soft labels {} for logits {}: give each image a share of each class, or no soft labels",
          batch.soft_labels.shape(), logits.shape());
  SoftTargetOptions<Accumulate<T>, D> options{.label_smoothing = label_smoothing};
  if (batch.labels.defined()) {
    require(batch.labels.shape() == Shape{logits.shape()[0]}, "the batch has labels {} for logits {}", batch.labels.shape(),
            logits.shape());
    options.counted = ne(batch.labels, data::no_label);
  }
  return cross_entropy(logits, batch.soft_labels, options);
}

}  // namespace models
}  // namespace trireme
