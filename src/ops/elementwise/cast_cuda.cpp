#include "ops/elementwise/cast_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/elementwise/cast_on.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::ops {

template <>
template <typename From, typename To>
void Casts<Cuda>::cast(std::int64_t count, const From* x, To* y, bool accumulate) {
  device::check_cuda(cuda::cast(count, x, y, accumulate, device::native_stream()), "cast");
}

TRIREME_INSTANTIATE_CAST(Cuda);

}  // namespace trireme::ops
