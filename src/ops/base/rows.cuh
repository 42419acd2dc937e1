#pragma once

#include <type_traits>

#include "device/cuda/launch.cuh"
#include "device/cuda/teams.cuh"
#include "ops/base/pack.hpp"

// Kernels in which a team processes one row at a time.
namespace trireme::ops {
namespace kernels {

template <typename Body>
__global__ void __launch_bounds__(device::threads_per_block) warp_rows(std::int64_t rows, Body body) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * blockDim.x / device::warp_size;
  for (std::int64_t row = thread / device::warp_size; row < rows; row += warps) body(device::WarpTeam{}, row);
}

template <typename Body>
__global__ void __launch_bounds__(device::threads_per_block) block_rows(std::int64_t rows, Body body) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) body(device::BlockTeam{}, row);
}

inline constexpr unsigned most_threads_of_block = 1024;

template <typename Body>
__global__ void __launch_bounds__(most_threads_of_block) one_block(Body body) {
  body(device::BlockTeam{});
}

}  // namespace kernels

// Calls body(team, row) for every row, each by a warp.
template <typename Body>
cudaError_t each_row_by_warp(std::int64_t rows, cudaStream_t stream, Body body) {
  if (rows == 0) return cudaSuccess;
  constexpr std::int64_t per_block = device::threads_per_block / device::warp_size;
  kernels::warp_rows<<<device::blocks_for(rows, per_block), device::threads_per_block, 0, stream>>>(rows, body);
  return device::launched();
}

// Likewise, each by a block.
template <typename Body>
cudaError_t each_row_by_block(std::int64_t rows, cudaStream_t stream, Body body) {
  if (rows == 0) return cudaSuccess;
  kernels::block_rows<<<device::blocks_for(rows, 1), device::threads_per_block, 0, stream>>>(rows, body);
  return device::launched();
}

inline constexpr std::int64_t longest_row_of_warp = 2048;

// Likewise, by warps if rows are short and by blocks if they are long.
template <typename Body>
cudaError_t each_row(std::int64_t rows, std::int64_t width, cudaStream_t stream, Body body) {
  return width <= longest_row_of_warp ? each_row_by_warp(rows, stream, body) : each_row_by_block(rows, stream, body);
}

// Calls body(team) with one block, the largest team.
template <typename Body>
cudaError_t by_one_block(cudaStream_t stream, Body body) {
  kernels::one_block<<<1, kernels::most_threads_of_block, 0, stream>>>(body);
  return device::launched();
}

// Calls launch(integral constant) with the number of elements T that fill 16 bytes, or with 1 if some row of `width` elements
// from one of the pointers on does not begin at a whole pack. Pointers may be null.
template <typename T, typename Launch, typename... X>
cudaError_t with_pack_width(std::int64_t width, Launch launch, const X*... x) {
  constexpr int most = 16 / sizeof(T);
  const bool aligned = width % most == 0 && (is_aligned(x) && ...);
  return aligned ? launch(std::integral_constant<int, most>{}) : launch(std::integral_constant<int, 1>{});
}

}  // namespace trireme::ops
