#pragma once

#include <cstdint>
#include <type_traits>

#include "device/cuda/launch.cuh"
#include "ops/base/pack.hpp"

// Elementwise kernels: y[i] = map(i, x[i]...), computed in Accumulate<Y>, or added to y[i].
namespace trireme::ops {
namespace kernels {

// Each thread takes `Width` neighbours at a time, in accesses of 16 bytes if all pointers are aligned.
template <int Width, typename Y, typename Map, typename... X>
__global__ void __launch_bounds__(device::threads_per_block)
    map(std::int64_t count, Y* y, bool accumulate, Map map, const X*... x) {
  using A = Accumulate<Y>;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t packs = count / Width;
  for (std::int64_t pack = thread; pack < packs; pack += step) {
    const std::int64_t first = pack * Width;
    Pack<Y, Width> result;
    if (accumulate) result = reinterpret_cast<const Pack<Y, Width>*>(y)[pack];
    const auto fill = [&](const Pack<X, Width>&... from) {
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        const A value = map(first + k, widened(from.at[k])...);
        result.at[k] = rounded<Y>(accumulate ? widened(result.at[k]) + value : value);
      }
    };
    fill(reinterpret_cast<const Pack<X, Width>*>(x)[pack]...);
    reinterpret_cast<Pack<Y, Width>*>(y)[pack] = result;
  }
  for (std::int64_t i = packs * Width + thread; i < count; i += step) {
    const A value = map(i, widened(x[i])...);
    y[i] = rounded<Y>(accumulate ? widened(y[i]) + value : value);
  }
}

}  // namespace kernels

template <typename Y, typename Map, typename... X>
cudaError_t map_elements(std::int64_t count, Y* y, bool accumulate, cudaStream_t stream, Map map, const X*... x) {
  if (count == 0) return cudaSuccess;
  constexpr int width = ((sizeof(X) == 2) || ... || (sizeof(Y) == 2)) ? 8 : 4;
  if (is_aligned(y) && (is_aligned(x) && ...)) {
    kernels::map<width><<<device::blocks_for((count + width - 1) / width), device::threads_per_block, 0, stream>>>(
        count, y, accumulate, map, x...);
  } else {
    kernels::map<1><<<device::blocks_for(count), device::threads_per_block, 0, stream>>>(count, y, accumulate, map, x...);
  }
  return device::launched();
}

}  // namespace trireme::ops
