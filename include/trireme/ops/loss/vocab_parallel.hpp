#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/ops/loss/vocab_range.hpp"

// Embedding and cross-entropy where a rank holds some of the rows, or classes, of a vocabulary.
namespace trireme TRIREME_EXPORT {
namespace ops {

// y[..., width] = the row index[...] of the vocabulary, zeros where another rank holds it: over all ranks that is the sum. An
// index outside [0, total) is an error that names its place; on a GPU its row is NaN.
template <typename T, typename D>
TRIREME_EXPORT void embedding_part(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& weight, const VocabRange& held,
                                   Tensor<T, D>& y);

// dweight[index - first] += dy for rows held here; as embedding_backward.
template <typename T, typename D>
TRIREME_EXPORT void embedding_part_backward(const Tensor<std::int32_t, D>& index, const Tensor<T, D>& dy,
                                            const VocabRange& held, Tensor<T, D>& dweight, bool accumulate);

// For each row of logits[rows, classes held here]: exponentials[2, rows] of these classes as those of cross_entropy, and the
// logit of the target, 0 where another rank holds it or the target is ignored_target.
template <typename T, typename D>
TRIREME_EXPORT void partial_cross_entropy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                          const VocabRange& held, Tensor<Accumulate<T>, D>& exponentials,
                                          Tensor<Accumulate<T>, D>& target_logits);

// parts[2 * ranks + 1, rows]: every rank's exponentials and, last, the sum of all ranks' target_logits. exponentials[2, rows]:
// of all classes.
template <typename A, typename D>
TRIREME_EXPORT CrossEntropyResult<D> join_cross_entropy(const Tensor<A, D>& parts, const Tensor<std::int32_t, D>& targets,
                                                        Tensor<A, D>& exponentials);

// dlogits = scale * (softmax(logits) - one hot) of the classes held here, with the exponentials of all; dlogits may be logits.
template <typename T, typename D>
TRIREME_EXPORT void partial_cross_entropy_backward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                                   const VocabRange& held, const Tensor<Accumulate<T>, D>& exponentials,
                                                   const ScalarFor<T, D>& scale, Tensor<T, D>& dlogits);

}  // namespace ops
}  // namespace trireme
