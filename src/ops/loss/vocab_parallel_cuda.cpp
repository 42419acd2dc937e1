#include "ops/loss/vocab_parallel_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/embedding/scatter_gradients_cuda.hpp"
#include "ops/loss/vocab_parallel_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void VocabParallel<Cuda>::embedding(const HeldRows& rows, const T* weight, T* y) {
  check_cuda(cuda::gather_held_rows(rows, weight, y, native_stream()), "embedding_part");
}

template <>
template <typename T>
void VocabParallel<Cuda>::embedding_backward(const HeldRows& rows, const T* dy, T* dweight, bool accumulate) {
  const cuda::IndexedRows of{.rows = rows.count, .first = static_cast<std::int32_t>(rows.held.first), .padding = -1};
  cuda::scatter_gradients(of, {.places = rows.places, .rows = rows.count, .width = rows.width}, rows.index, dy, dweight,
                          accumulate);
}

template <>
template <typename T>
void VocabParallel<Cuda>::partial_cross_entropy(const HeldClasses<T>& rows, Accumulate<T>* exponentials,
                                                Accumulate<T>* target_logits) {
  check_cuda(cuda::partial_cross_entropy(rows, exponentials, target_logits, native_stream()), "partial_cross_entropy");
}

template <>
template <typename A>
CrossEntropyResult<Cuda> VocabParallel<Cuda>::join(const CrossEntropyParts<A>& parts, A* exponentials) {
  const Tensor<double, Cuda> losses({parts.rows});
  const Tensor<double, Cuda> sums({2});
  check_cuda(cuda::join_cross_entropy(parts, exponentials, losses.data(), sums.data(), native_stream()), "join_cross_entropy");
  return {.sum = Scalar<double, Cuda>(sums.narrow(0, 1)), .target_weight = Scalar<double, Cuda>(sums.narrow(1, 1))};
}

template <>
template <typename T>
void VocabParallel<Cuda>::partial_cross_entropy_backward(const HeldClasses<T>& rows, const Accumulate<T>* exponentials,
                                                         const ScalarArgument<Accumulate<T>>& scale, T* dlogits) {
  check_cuda(cuda::partial_cross_entropy_backward(rows, exponentials, scale, dlogits, native_stream()),
             "partial_cross_entropy_backward");
}

TRIREME_INSTANTIATE(FLOATS, partial_cross_entropy, Cuda)
TRIREME_INSTANTIATE(FLOATS, partial_cross_entropy_backward, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, embedding_part, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, embedding_part_backward, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, join_cross_entropy, Cuda)

}  // namespace trireme::ops
