#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "device/cuda/launch.cuh"
#include "device/cuda/teams.cuh"
#include "ops/base/pack.hpp"
#include "trireme/ops/update/formula.hpp"
#include "trireme/ops/update/planes.hpp"

// Passes over planes of equal length, which call update(plane[i]...) and read and write every element once. Planes of const
// elements are only read; NotKept stands for a missing plane. make() returns the update; if make.skipped(), nothing changes.
namespace trireme::ops {

// Makes the update of one element in a kernel, from the step and the numbers that its on_device points to.
template <typename Update>
struct MadeOf {
  typename Update::Step step;

  __device__ bool skipped() const {
    if constexpr (requires { step.on_device; }) return is_skipped(step.on_device);
    return false;
  }
  __device__ Update operator()() const {
    if constexpr (requires { step.on_device; }) return Update(resolved(step));
    return Update(step);
  }
};

namespace kernels {

// Not inlined, so that the kernel keeps its registers for the elements.
template <typename Make>
__device__ __noinline__ auto made(const Make& make) {
  return make();
}

template <int Width, typename T>
__device__ Pack<std::remove_const_t<T>, Width> load(T* plane, std::int64_t pack) {
  return reinterpret_cast<const Pack<std::remove_const_t<T>, Width>*>(plane)[pack];
}
template <int Width>
__device__ Pack<NotKept, Width> load(NotKept, std::int64_t) {
  return {};
}

template <int Width, typename T>
__device__ void store(T* plane, std::int64_t pack, const Pack<std::remove_const_t<T>, Width>& elements) {
  if constexpr (!std::is_const_v<T>) reinterpret_cast<Pack<T, Width>*>(plane)[pack] = elements;
}
template <int Width>
__device__ void store(NotKept, std::int64_t, const Pack<NotKept, Width>&) {}

// One thread of a block makes the update for all threads.
template <typename Make>
__device__ __forceinline__ auto made_for_block(const Make& make) {
  using Update = decltype(make());
  __shared__ alignas(Update) std::byte of_block[sizeof(Update)];
  if (threadIdx.x == 0) ::new (of_block) Update(made(make));
  __syncthreads();
  return *reinterpret_cast<const Update*>(of_block);
}

template <int Width, typename Make, typename... Planes>
__global__ void __launch_bounds__(device::threads_per_block) update(std::int64_t count, Make make, Planes... planes) {
  if (make.skipped()) return;
  const auto update = made_for_block(make);
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t packs = count / Width;
  for (std::int64_t pack = thread; pack < packs; pack += step) {
    const auto update_pack = [&](auto... elements) {
#pragma unroll
      for (int k = 0; k < Width; ++k) update(elements.at[k]...);
      (store<Width>(planes, pack, elements), ...);
    };
    update_pack(load<Width>(planes, pack)...);
  }
  for (std::int64_t i = packs * Width + thread; i < count; i += step) update(planes[i]...);
}

template <typename Make, typename Body>
__global__ void __launch_bounds__(device::threads_per_block) update_rows(std::int64_t rows, Make make, Body body) {
  const bool skipped = make.skipped();
  const auto update = made_for_block(make);
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) body(update, skipped, device::BlockTeam{}, row);
}

template <typename Make, typename Body>
__global__ void __launch_bounds__(device::threads_per_block) update_warp_rows(std::int64_t rows, Make make, Body body) {
  const bool skipped = make.skipped();
  const auto update = made_for_block(make);
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * blockDim.x / device::warp_size;
  for (std::int64_t row = thread / device::warp_size; row < rows; row += warps) body(update, skipped, device::WarpTeam{}, row);
}

}  // namespace kernels

inline bool begins_packs(const void* plane) { return is_aligned(plane); }
inline bool begins_packs(NotKept) { return true; }

template <typename Make, typename T, typename... Planes>
cudaError_t update_planes(std::size_t count, cudaStream_t stream, const Make& make, T* first, Planes... others) {
  if (count == 0) return cudaSuccess;
  constexpr int width = 16 / static_cast<int>(sizeof(T));
  const auto elements = static_cast<std::int64_t>(count);
  if (begins_packs(first) && (begins_packs(others) && ...)) {
    kernels::update<width><<<device::blocks_for((elements + width - 1) / width), device::threads_per_block, 0, stream>>>(
        elements, make, first, others...);
  } else {
    kernels::update<1>
        <<<device::blocks_for(elements), device::threads_per_block, 0, stream>>>(elements, make, first, others...);
  }
  return device::launched();
}

// Calls body(make(), make.skipped(), team, row) for every row, each by a block.
template <typename Make, typename Body>
cudaError_t update_rows(std::int64_t rows, cudaStream_t stream, const Make& make, const Body& body) {
  if (rows == 0) return cudaSuccess;
  kernels::update_rows<<<device::blocks_for(rows, 1), device::threads_per_block, 0, stream>>>(rows, make, body);
  return device::launched();
}

// Likewise, each by a warp.
template <typename Make, typename Body>
cudaError_t update_rows_by_warp(std::int64_t rows, cudaStream_t stream, const Make& make, const Body& body) {
  if (rows == 0) return cudaSuccess;
  constexpr std::int64_t per_block = device::threads_per_block / device::warp_size;
  kernels::update_warp_rows<<<device::blocks_for(rows, per_block), device::threads_per_block, 0, stream>>>(rows, make, body);
  return device::launched();
}

}  // namespace trireme::ops
