#pragma once

#include <cuda_runtime_api.h>

#include "ops/loss/cross_entropy_rows.hpp"

// Launches: T is float, double, bfloat16 or float16. losses[rows.count] is scratch memory for the sums.
namespace trireme::ops::cuda {

// class_weight_sum is on the GPU; null if it is not needed.
template <typename T>
struct CrossEntropyLaunch {
  CrossEntropyRows<T> rows;
  const double* class_weight_sum;
  cudaStream_t stream;
};

template <typename T>
cudaError_t cross_entropy_sums(const CrossEntropyLaunch<T>& launch, Accumulate<T>* exponentials, double* losses, double* sums);
template <typename T>
cudaError_t cross_entropy_in_place(const CrossEntropyLaunch<T>& launch, Accumulate<T> scale, T* logits, double* losses,
                                   double* sums);
template <typename T>
cudaError_t cross_entropy_losses(const CrossEntropyLaunch<T>& launch, const Accumulate<T>* exponentials, Accumulate<T>* losses);
template <typename T>
cudaError_t cross_entropy_backward(const CrossEntropyLaunch<T>& launch, const Accumulate<T>* exponentials,
                                   const CrossEntropyScale<Accumulate<T>>& scale, T* dlogits);

}  // namespace trireme::ops::cuda
