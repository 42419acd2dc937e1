#include "device/cuda/launch.cuh"
#include "ops/elementwise/full_cuda.hpp"

namespace trireme::ops::cuda {

template <typename T, typename S>
cudaError_t full(std::int64_t count, const Full<T, S>& body, cudaStream_t stream) {
  return device::for_each_index(count, stream, body);
}

template cudaError_t full(std::int64_t, const Full<float, double>&, cudaStream_t);
template cudaError_t full(std::int64_t, const Full<double, double>&, cudaStream_t);
template cudaError_t full(std::int64_t, const Full<bfloat16, double>&, cudaStream_t);
template cudaError_t full(std::int64_t, const Full<float16, double>&, cudaStream_t);
template cudaError_t full(std::int64_t, const Full<float, float>&, cudaStream_t);
template cudaError_t full(std::int64_t, const Full<bfloat16, bfloat16>&, cudaStream_t);
template cudaError_t full(std::int64_t, const Full<float16, float16>&, cudaStream_t);

}  // namespace trireme::ops::cuda
