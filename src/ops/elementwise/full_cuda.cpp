#include "ops/elementwise/full_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/elementwise/full_on.hpp"

namespace trireme::ops {

template <>
template <typename T, typename S>
void Fills<Cuda>::each_index(std::int64_t count, const Full<T, S>& body) {
  device::check_cuda(cuda::full(count, body, device::native_stream()), "full");
}

TRIREME_INSTANTIATE_FULL(Cuda);

}  // namespace trireme::ops
