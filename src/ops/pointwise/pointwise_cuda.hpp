#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ops/pointwise/pointwise_body.hpp"

// Launches: T is float, double, bfloat16 or float16, and where noted ("also integers") std::int32_t or std::int64_t.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t binary(const BinaryElement<T>& element, cudaStream_t stream);  // also integers
template <typename T>
cudaError_t binary_slope(const BinarySlopeElement<T>& element, cudaStream_t stream);
template <typename T>
cudaError_t unary(Unary kind, Accumulate<T> first, Accumulate<T> second, std::int64_t count, const T* x, T* y,
                  cudaStream_t stream);  // also integers
template <typename T>
cudaError_t unary_slope(Unary kind, Accumulate<T> first, Accumulate<T> second, std::int64_t count, const T* x, const T* dy,
                        T* dx, bool accumulate, cudaStream_t stream);
template <typename T>
cudaError_t compare(const CompareElement<T>& element, cudaStream_t stream);  // also integers
template <typename T>
cudaError_t test(FloatTest kind, std::int64_t count, const T* x, bool* mask, cudaStream_t stream);
cudaError_t logical(const LogicalElement& element, cudaStream_t stream);
template <typename Bits>
cudaError_t where(const WhereElement<Bits>& element, cudaStream_t stream);

}  // namespace trireme::ops::cuda
