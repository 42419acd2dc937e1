#include "ops/base/rows.cuh"
#include "ops/pointwise/pointwise_cuda.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t binary(const BinaryElement<T>& element, cudaStream_t stream) {
  return device::for_each_index(element.plan.numel, stream, element);
}

template <typename T>
cudaError_t binary_slope(const BinarySlopeElement<T>& element, cudaStream_t stream) {
  return device::for_each_index(element.plan.numel, stream, element);
}

template <typename T>
cudaError_t compare(const CompareElement<T>& element, cudaStream_t stream) {
  return device::for_each_index(element.plan.numel, stream, element);
}

cudaError_t logical(const LogicalElement& element, cudaStream_t stream) {
  return device::for_each_index(element.plan.numel, stream, element);
}

template <typename Bits>
cudaError_t where(const WhereElement<Bits>& element, cudaStream_t stream) {
  return device::for_each_index(element.plan.numel, stream, element);
}

template <typename T>
cudaError_t sum_middle(std::int64_t first, std::int64_t middle, std::int64_t last, const T* x, Accumulate<T>* y,
                       cudaStream_t stream) {
  constexpr std::int64_t neighbours = 32;  // that a warp reads at once
  if (last >= neighbours) return device::for_each_index(first * last, stream, SumMiddleElement<T>{x, middle, last, y});
  return each_row(first * last, middle, stream, SumMiddleTeam<T>{x, middle, last, y});
}

#define TRIREME_INSTANTIATE_ANY(T)                                    \
  template cudaError_t binary(const BinaryElement<T>&, cudaStream_t); \
  template cudaError_t compare(const CompareElement<T>&, cudaStream_t)
#define TRIREME_INSTANTIATE(T)                                                   \
  TRIREME_INSTANTIATE_ANY(T);                                                    \
  template cudaError_t binary_slope(const BinarySlopeElement<T>&, cudaStream_t); \
  template cudaError_t sum_middle(std::int64_t, std::int64_t, std::int64_t, const T*, Accumulate<T>*, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
TRIREME_INSTANTIATE_ANY(std::int32_t);
TRIREME_INSTANTIATE_ANY(std::int64_t);

template cudaError_t where(const WhereElement<std::uint8_t>&, cudaStream_t);
template cudaError_t where(const WhereElement<std::uint16_t>&, cudaStream_t);
template cudaError_t where(const WhereElement<std::uint32_t>&, cudaStream_t);
template cudaError_t where(const WhereElement<std::uint64_t>&, cudaStream_t);

}  // namespace trireme::ops::cuda
