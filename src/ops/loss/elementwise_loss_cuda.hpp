#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ops/base/scalar_argument.hpp"
#include "ops/loss/elementwise_loss_of.hpp"
#include "trireme/core/dtype.hpp"

// Launches: T is float, double, bfloat16 or float16.
namespace trireme::ops::cuda {

// *total is on the GPU, as sums[num_sum_parts(count)] (ops/reduce/reduce_cuda.hpp).
template <typename T>
cudaError_t elementwise_loss(const ElementwiseLossOf<Accumulate<T>>& loss, std::int64_t count, const T* x,
                             const Accumulate<T>* target, double* sums, double* total, cudaStream_t stream);
template <typename T>
cudaError_t elementwise_loss_backward(const ElementwiseLossOf<Accumulate<T>>& loss, std::int64_t count, const T* x,
                                      const Accumulate<T>* target, const ScalarArgument<Accumulate<T>>& scale, T* dx,
                                      bool accumulate, cudaStream_t stream);

}  // namespace trireme::ops::cuda
