#include "device/cuda/launch.cuh"
#include "ops/elementwise/dropout_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t dropout(const Dropout<T>& all, cudaStream_t stream) {
  return device::for_each_index(all.num_parts(), stream, [all] __device__(std::int64_t part) { all.part(part); });
}

TRIREME_INSTANTIATE(FLOATS, dropout)

}  // namespace trireme::ops::cuda
