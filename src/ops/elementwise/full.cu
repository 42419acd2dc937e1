#include "device/cuda/launch.cuh"
#include "ops/elementwise/full_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T, typename S>
cudaError_t full(std::int64_t count, const Full<T, S>& body, cudaStream_t stream) {
  return device::for_each_index(count, stream, body);
}

TRIREME_INSTANTIATE(FLOATS, full, double)
TRIREME_INSTANCE(float, full, float)
TRIREME_INSTANCE(bfloat16, full, bfloat16)
TRIREME_INSTANCE(float16, full, float16)

}  // namespace trireme::ops::cuda
