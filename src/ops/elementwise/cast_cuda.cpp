#include "ops/elementwise/cast_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/elementwise/cast_on.hpp"
#include "precision/instantiate.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::ops {

template <>
template <typename From, typename To>
void Casts<Cuda>::cast(std::int64_t count, const From* x, To* y, bool accumulate) {
  device::check_cuda(cuda::cast(count, x, y, accumulate, device::native_stream()), "cast");
}

TRIREME_INSTANCE(float, cast, bfloat16, Cuda)
TRIREME_INSTANCE(float, cast, float16, Cuda)
TRIREME_INSTANCE(float, cast, double, Cuda)
TRIREME_INSTANCE(double, cast, float, Cuda)
TRIREME_INSTANTIATE(HALVES, cast, float, Cuda)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, cast, float, Cuda)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, cast, double, Cuda)
TRIREME_INSTANCE(std::int32_t, cast, std::int64_t, Cuda)
TRIREME_INSTANCE(std::int64_t, cast, std::int32_t, Cuda)
TRIREME_INSTANCE(bool, cast, float, Cuda)
TRIREME_INSTANCE(bool, cast, double, Cuda)
TRIREME_INSTANCE(bool, cast, std::int32_t, Cuda)
TRIREME_INSTANCE(bool, cast, std::int64_t, Cuda)

}  // namespace trireme::ops
