#pragma once

#include <cuda_runtime_api.h>

#include "ops/base/scalar_argument.hpp"
#include "ops/loss/vocab_parallel_rows.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t gather_held_rows(const HeldRows& rows, const T* weight, T* y, cudaStream_t stream);
template <typename T>
cudaError_t partial_cross_entropy(const HeldClasses<T>& rows, Accumulate<T>* exponentials, Accumulate<T>* target_logits,
                                  cudaStream_t stream);
template <typename T>
cudaError_t partial_cross_entropy_backward(const HeldClasses<T>& rows, const Accumulate<T>* exponentials,
                                           const ScalarArgument<Accumulate<T>>& scale, T* dlogits, cudaStream_t stream);
// losses[rows] is scratch memory for the sums; sums[2]: the losses, the target weight.
template <typename A>
cudaError_t join_cross_entropy(const CrossEntropyParts<A>& parts, A* exponentials, double* losses, double* sums,
                               cudaStream_t stream);

}  // namespace trireme::ops::cuda
