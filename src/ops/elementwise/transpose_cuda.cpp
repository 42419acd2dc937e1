#include "ops/elementwise/transpose_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/elementwise/transpose_on.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Transpose<Cuda>::copy(const TransposeSizes& sizes, const T* x, T* y) {
  device::check_cuda(cuda::transpose(sizes, sizeof(T), x, y, device::native_stream()), "transpose");
}

TRIREME_INSTANTIATE_TRANSPOSE(float, Cuda);
TRIREME_INSTANTIATE_TRANSPOSE(double, Cuda);
TRIREME_INSTANTIATE_TRANSPOSE(bfloat16, Cuda);
TRIREME_INSTANTIATE_TRANSPOSE(float16, Cuda);
TRIREME_INSTANTIATE_TRANSPOSE(std::int32_t, Cuda);
TRIREME_INSTANTIATE_TRANSPOSE(std::int64_t, Cuda);
TRIREME_INSTANTIATE_TRANSPOSE(bool, Cuda);

}  // namespace trireme::ops
