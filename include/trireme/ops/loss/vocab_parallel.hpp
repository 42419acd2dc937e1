#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/ops/loss/vocab_range.hpp"

// Embedding and cross-entropy for a vocabulary whose rows, or classes, are divided among the ranks.
namespace trireme TRIREME_EXPORT {
namespace ops {

// y[..., width] = row index[...] of the vocabulary, or zeros if another rank holds this row. The sum of y over all ranks is the
// embedding. An index outside [0, total) is an error that names its place; on a GPU the row of y is NaN.
template <typename T, typename D>
TRIREME_EXPORT void embedding_part(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, const VocabRange& held,
                                   Tensor<T, D>& y);

// As embedding_backward, for the rows held here: dweight[index - first] += dy.
template <typename T, typename D>
TRIREME_EXPORT void embedding_part_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy,
                                            const VocabRange& held, Tensor<T, D>& dweight, bool accumulate);

// logits[rows, classes] has the classes held here. For each row, computes exponentials[2, rows] over these classes, as in
// cross_entropy, and the logit of the target. This logit is 0 if another rank holds the target or the target is
// ignored_target.
template <typename T, typename D>
TRIREME_EXPORT void partial_cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                          const VocabRange& held, Tensor<Accumulate<T>, D>& exponentials,
                                          Tensor<Accumulate<T>, D>& target_logits);

// parts[2 * ranks + 1, rows]: every rank's exponentials and, last, the sum of all ranks' target_logits. Writes exponentials[2,
// rows] over all classes.
template <typename A, typename D>
TRIREME_EXPORT CrossEntropyResult<D> join_cross_entropy(const Tensor<A, D>& parts, const Tensor<std::int32_t, D>& targets,
                                                        Tensor<A, D>& exponentials);

// dlogits = scale * (softmax(logits) - one_hot(targets)) for the classes held here. exponentials are over all classes; dlogits
// may be logits.
template <typename T, typename D>
TRIREME_EXPORT void partial_cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                                   const VocabRange& held, const Tensor<Accumulate<T>, D>& exponentials,
                                                   const ScalarFor<T, D>& scale, Tensor<T, D>& dlogits);

}  // namespace ops
}  // namespace trireme
