#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace trireme::device {

inline constexpr unsigned threads_per_block = 256;
inline constexpr std::int64_t multiprocessors = 132;               // of an H100 or H200
inline constexpr std::int64_t most_blocks = 16 * multiprocessors;  // more blocks would only wait

// The number of blocks of a grid in which threads loop over `items` with the stride of the grid.
inline unsigned blocks_for(std::int64_t items, std::int64_t per_block = threads_per_block) {
  const std::int64_t blocks = (items + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
}

// The error of the last launch, or of an earlier kernel.
inline cudaError_t launched() { return cudaGetLastError(); }

namespace kernels {
template <typename Body>
__global__ void __launch_bounds__(threads_per_block) each_index(std::int64_t count, Body body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) body(i);
}
}  // namespace kernels

// Calls body(i) for every i in [0, count) on the GPU's threads.
template <typename Body>
cudaError_t for_each_index(std::int64_t count, cudaStream_t stream, Body body) {
  if (count == 0) return cudaSuccess;
  kernels::each_index<<<blocks_for(count), threads_per_block, 0, stream>>>(count, body);
  return launched();
}

}  // namespace trireme::device
