#include "device/cuda/launch.cuh"
#include "ops/embedding/positions_cuda.hpp"

namespace trireme::ops::cuda {

cudaError_t positions(std::int64_t first, std::int64_t time, std::int64_t count, std::int32_t* y, cudaStream_t stream) {
  return device::for_each_index(count, stream,
                                [=] __device__(std::int64_t i) { y[i] = static_cast<std::int32_t>((first + i) % time); });
}

}  // namespace trireme::ops::cuda
