#include "ops/update/adam_8bit_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/update/adam_8bit_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Adam8bitPasses<Cuda>::update(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes) {
  check_cuda(cuda::adam_8bit<T>(step, count, planes, nullptr, 0, native_stream()), "adam_8bit");
}

template <>
template <typename T>
void Adam8bitPasses<Cuda>::measure(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes, float* absmax) {
  check_cuda(cuda::measure_adam_8bit<T>(step, count, planes, absmax, native_stream()), "measure_adam_8bit");
}

template <>
template <typename T>
void Adam8bitPasses<Cuda>::update_part(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes,
                                       const float* absmax, std::int64_t parts) {
  check_cuda(cuda::adam_8bit<T>(step, count, planes, absmax, parts, native_stream()), "adam_8bit_part");
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, adam_8bit, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, measure_adam_8bit, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, adam_8bit_part, Cuda)

}  // namespace trireme::ops
