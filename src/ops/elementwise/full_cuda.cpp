#include "ops/elementwise/full_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/elementwise/full_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T, typename S>
void Fills<Cuda>::each_index(std::int64_t count, const Full<T, S>& body) {
  device::check_cuda(cuda::full(count, body, device::native_stream()), "full");
}

TRIREME_INSTANTIATE(FLOATS, full, double, Cuda)
TRIREME_INSTANCE(float, full, float, Cuda)
TRIREME_INSTANCE(bfloat16, full, bfloat16, Cuda)
TRIREME_INSTANCE(float16, full, float16, Cuda)

}  // namespace trireme::ops
