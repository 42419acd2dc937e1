#include "device/cuda/launch.cuh"
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

#define TRIREME_INSTANTIATE_ANY(T)                                    \
  template cudaError_t binary(const BinaryElement<T>&, cudaStream_t); \
  template cudaError_t compare(const CompareElement<T>&, cudaStream_t)
#define TRIREME_INSTANTIATE(T) \
  TRIREME_INSTANTIATE_ANY(T);  \
  template cudaError_t binary_slope(const BinarySlopeElement<T>&, cudaStream_t)
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
