#include "ops/base/rows.cuh"
#include "ops/loss/vocab_parallel_body.hpp"
#include "ops/loss/vocab_parallel_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t gather_held_rows(const HeldRows& rows, const T* weight, T* y, cudaStream_t stream) {
  return with_pack_width<T>(
      rows.width,
      [=](auto pack) {
        return device::for_each_index(rows.places * rows.width / pack(), stream, GatherHeldRows<pack(), T>{rows, weight, y});
      },
      weight, y);
}

template <typename T>
cudaError_t partial_cross_entropy(const HeldClasses<T>& rows, Accumulate<T>* exponentials, Accumulate<T>* target_logits,
                                  cudaStream_t stream) {
  return with_pack_width<T>(
      rows.classes,
      [=](auto pack) {
        return each_row(rows.rows, rows.classes, stream, PartialCrossEntropy<pack(), T>{rows, exponentials, target_logits});
      },
      rows.logits);
}

template <typename T>
cudaError_t partial_cross_entropy_backward(const HeldClasses<T>& rows, const Accumulate<T>* exponentials,
                                           const ScalarArgument<Accumulate<T>>& scale, T* dlogits, cudaStream_t stream) {
  return with_pack_width<T>(
      rows.classes,
      [=](auto pack) {
        return each_row(rows.rows, rows.classes, stream,
                        PartialCrossEntropyGradient<pack(), T>{rows, exponentials, scale, dlogits});
      },
      rows.logits, dlogits);
}

template <typename A>
cudaError_t join_cross_entropy(const CrossEntropyParts<A>& parts, A* exponentials, double* losses, double* sums,
                               cudaStream_t stream) {
  const cudaError_t status = device::for_each_index(parts.rows, stream, JoinCrossEntropy<A>{parts, exponentials, losses});
  return status == cudaSuccess ? by_one_block(stream, JoinedTotal{parts.targets, losses, parts.rows, sums}) : status;
}

TRIREME_INSTANTIATE(FLOATS, partial_cross_entropy)
TRIREME_INSTANTIATE(FLOATS, partial_cross_entropy_backward)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, gather_held_rows)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, join_cross_entropy)

}  // namespace trireme::ops::cuda
