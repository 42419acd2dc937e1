#include "device/cuda/launch.cuh"
#include "device/cuda/teams.cuh"
#include "ops/attention/attention_body.hpp"
#include "ops/attention/attention_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace kernels {

// Block b of threads takes the items b, b + gridDim.x, and so on.
template <typename Kernel>
__global__ void __launch_bounds__(device::threads_per_block) attention_tiles(Kernel kernel) {
  extern __shared__ __align__(16) unsigned char scratch[];
  const device::BlockTeam team;
  for (std::int64_t item = blockIdx.x; item < kernel.items(); item += gridDim.x) {
    kernel(team, item, reinterpret_cast<typename Kernel::A*>(scratch));
    team.wait();  // before the next item overwrites the scratch memory
  }
}

}  // namespace kernels

namespace cuda {

template <typename Kernel>
cudaError_t run_tiles(const Kernel& kernel, cudaStream_t stream) {
  if (kernel.items() == 0) return cudaSuccess;
  const auto elements = static_cast<std::size_t>(Kernel::counts.elements(kernel.rows, kernel.size()));
  kernels::attention_tiles<<<device::blocks_for(kernel.items(), 1), device::threads_per_block,
                             elements * sizeof(typename Kernel::A), stream>>>(kernel);
  return device::launched();
}

#define TRIREME_TILES(T)                                     \
  TRIREME_INSTANCE(AttentionForwardTile<T>, run_tiles)       \
  TRIREME_INSTANCE(AttentionQueryGradientTile<T>, run_tiles) \
  TRIREME_INSTANCE(AttentionKeyGradientTile<T>, run_tiles)
TRIREME_EACH(FLOATS, TRIREME_TILES)

}  // namespace cuda
}  // namespace trireme::ops
