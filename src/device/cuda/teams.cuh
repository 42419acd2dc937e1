#pragma once

#include <cuda_runtime.h>

#include "device/cuda/team.hpp"

// Teams of a GPU (device/cuda/team.hpp). Sums have a fixed order, so they have the same bits in every run.
namespace trireme::device {

inline constexpr int warp_size = 32;

// The 32 threads of a warp.
class WarpTeam {
 public:
  __device__ int rank() const { return static_cast<int>(threadIdx.x) % warp_size; }
  __device__ int size() const { return warp_size; }
  __device__ void wait() const { __syncwarp(); }

  template <typename T>
  __device__ T sum(T x) const {
    return reduce(x, [](T a, T b) { return a + b; });
  }
  template <typename T>
  __device__ Two<T> sum(Two<T> x) const {
    return {sum(x.first), sum(x.second)};
  }
  template <typename T>
  __device__ T max(T x) const {
    return reduce(x, [](T a, T b) { return a > b || a != a ? a : b; });
  }

 private:
  template <typename T, typename Combine>
  __device__ static T reduce(T x, Combine combine) {
#pragma unroll
    for (int distance = warp_size / 2; distance > 0; distance /= 2) x = combine(x, __shfl_xor_sync(0xFFFFFFFF, x, distance));
    return x;
  }
};

// All threads of a block: whole warps, at most 1,024 threads.
class BlockTeam {
 public:
  __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return static_cast<int>(blockDim.x); }
  __device__ void wait() const { __syncthreads(); }

  template <typename T>
  __device__ T sum(T x) const {
    return reduce(x, T{}, [](const WarpTeam& warp, T y) { return warp.sum(y); });
  }
  template <typename T>
  __device__ T max(T x) const {
    return reduce(x, x, [](const WarpTeam& warp, T y) { return warp.max(y); });
  }

 private:
  // `neutral` replaces the values of missing warps in a block of fewer than 1,024 threads.
  template <typename T, typename OfWarp>
  __device__ static T reduce(T x, T neutral, OfWarp of_warp) {
    __shared__ T of_warps[warp_size];
    const WarpTeam warp;
    const int warps = static_cast<int>(blockDim.x) / warp_size;
    const int number = static_cast<int>(threadIdx.x) / warp_size;
    const T mine = of_warp(warp, x);
    if (warp.rank() == 0) of_warps[number] = mine;
    __syncthreads();
    const T all = of_warp(warp, warp.rank() < warps ? of_warps[warp.rank()] : neutral);
    __syncthreads();  // before the next reduction writes of_warps
    return all;
  }
};

}  // namespace trireme::device
