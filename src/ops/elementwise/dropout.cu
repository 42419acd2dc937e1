#include "device/cuda/launch.cuh"
#include "ops/elementwise/dropout_cuda.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t dropout(const Dropout<T>& all, cudaStream_t stream) {
  return device::for_each_index(all.num_parts(), stream, [all] __device__(std::int64_t part) { all.part(part); });
}

template cudaError_t dropout(const Dropout<float>&, cudaStream_t);
template cudaError_t dropout(const Dropout<double>&, cudaStream_t);
template cudaError_t dropout(const Dropout<bfloat16>&, cudaStream_t);
template cudaError_t dropout(const Dropout<float16>&, cudaStream_t);

}  // namespace trireme::ops::cuda
