#include "device/cuda/launch.cuh"
#include "ops/pointwise/pointwise_cuda.hpp"
#include "precision/instantiate.hpp"

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

TRIREME_INSTANTIATE(NUMBERS, binary)
TRIREME_INSTANTIATE(NUMBERS, compare)
TRIREME_INSTANTIATE(FLOATS, binary_slope)

template cudaError_t where(const WhereElement<std::uint8_t>&, cudaStream_t);
template cudaError_t where(const WhereElement<std::uint16_t>&, cudaStream_t);
template cudaError_t where(const WhereElement<std::uint32_t>&, cudaStream_t);
template cudaError_t where(const WhereElement<std::uint64_t>&, cudaStream_t);

}  // namespace trireme::ops::cuda
