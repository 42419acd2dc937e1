#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/cuda/launch.cuh"
#include "ops/bodies/pack.hpp"

// Passes over planes of equal length, which read and write every element once: update(plane[i]...), planes of const elements
// are only read.
namespace trireme::ops {
namespace kernels {

template <int Width, typename T>
__device__ void store(T* plane, std::int64_t pack, const Pack<std::remove_const_t<T>, Width>& elements) {
  if constexpr (!std::is_const_v<T>) reinterpret_cast<Pack<T, Width>*>(plane)[pack] = elements;
}

template <int Width, typename Update, typename... Planes>
__global__ void __launch_bounds__(device::threads_per_block) update(std::int64_t count, Update update, Planes*... planes) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t packs = count / Width;
  for (std::int64_t pack = thread; pack < packs; pack += step) {
    const auto update_pack = [&](Pack<std::remove_const_t<Planes>, Width>... elements) {
#pragma unroll
      for (int k = 0; k < Width; ++k) update(elements.at[k]...);
      (store<Width>(planes, pack, elements), ...);
    };
    update_pack(reinterpret_cast<const Pack<std::remove_const_t<Planes>, Width>*>(planes)[pack]...);
  }
  for (std::int64_t i = packs * Width + thread; i < count; i += step) update(planes[i]...);
}

}  // namespace kernels

template <typename Update, typename... Planes>
cudaError_t update_elements(std::size_t count, cudaStream_t stream, const Update& update, Planes*... planes) {
  if (count == 0) return cudaSuccess;
  constexpr int width = 16 / static_cast<int>(sizeof(std::common_type_t<Planes...>));
  const auto elements = static_cast<std::int64_t>(count);
  if ((is_aligned(planes) && ...)) {
    kernels::update<width><<<device::blocks_for((elements + width - 1) / width), device::threads_per_block, 0, stream>>>(
        elements, update, planes...);
  } else {
    kernels::update<1><<<device::blocks_for(elements), device::threads_per_block, 0, stream>>>(elements, update, planes...);
  }
  return device::launched();
}

}  // namespace trireme::ops
