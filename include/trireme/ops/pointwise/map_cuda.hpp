#pragma once

#ifdef __CUDACC__

#include <array>
#include <cstdint>
#include <utility>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/device/stream.hpp"
#include "trireme/math/dual.hpp"
#include "trireme/ops/pointwise/broadcast.hpp"

// The loops of ops/pointwise/map.hpp on a GPU, for files that nvcc compiles. For other compilers this header is empty.
namespace trireme TRIREME_EXPORT {
namespace ops {

template <typename T>
struct MapGradient;

namespace map_kernels {

template <typename T, std::size_t n>
struct Pointers {
  T of[n];
};

inline constexpr unsigned threads = 256;
inline constexpr std::int64_t most_blocks = 132 * 16;

template <typename F, typename T, std::size_t n, std::size_t... k>
__global__ void __launch_bounds__(threads)
    forward(Broadcast plan, F function, Pointers<const T*, n> x, T* y, std::index_sequence<k...>) {
  using A = Accumulate<T>;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < plan.numel; i += step) {
    const math::Dual<A, 0> value(function(math::Dual<A, 0>(static_cast<A>(x.of[k][plan.offset(int{k}, i)]))...));
    y[i] = static_cast<T>(value.value);
  }
}

template <typename F, typename T, std::size_t n, std::size_t... k>
__global__ void __launch_bounds__(threads)
    backward(Broadcast plan, F function, Pointers<const T*, n> x, const T* dy, Pointers<T*, n> dx, Pointers<bool, n> accumulate,
             std::index_sequence<k...>) {
  using A = Accumulate<T>;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < plan.numel; i += step) {
    const math::Dual<A, n> value(function(math::Dual<A, n>::variable(static_cast<A>(x.of[k][plan.offset(int{k}, i)]), k)...));
    const auto upstream = static_cast<A>(dy[i]);
    const auto write = [&](T* to, bool adds, A slope) {
      if (to == nullptr) return;
      const A product = upstream * slope;
      to[i] = static_cast<T>(adds ? static_cast<A>(to[i]) + product : product);
    };
    (write(dx.of[k], accumulate.of[k], value.slope[k]), ...);
  }
}

inline unsigned blocks_for(std::int64_t count) {
  const std::int64_t blocks = (count + threads - 1) / threads;
  return static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
}

inline void require_launched() {
  const cudaError_t status = cudaGetLastError();
  require(status == cudaSuccess, "map: {}", cudaGetErrorString(status));
}

}  // namespace map_kernels

template <typename F, typename T, std::size_t n>
void launch_map(const Broadcast& plan, const F& function, const std::array<const T*, n>& x, T* y) {
  map_kernels::Pointers<const T*, n> from;
  for (std::size_t k = 0; k < n; ++k) from.of[k] = x[k];
  const auto stream = static_cast<cudaStream_t>(device::current_stream().handle());
  map_kernels::forward<F, T, n><<<map_kernels::blocks_for(plan.numel), map_kernels::threads, 0, stream>>>(
      plan, function, from, y, std::make_index_sequence<n>());
  map_kernels::require_launched();
}

template <typename F, typename T, std::size_t n>
void launch_map_backward(const Broadcast& plan, const F& function, const std::array<const T*, n>& x, const T* dy,
                         const std::array<MapGradient<T>, n>& dx) {
  map_kernels::Pointers<const T*, n> from;
  map_kernels::Pointers<T*, n> to;
  map_kernels::Pointers<bool, n> accumulate;
  for (std::size_t k = 0; k < n; ++k) {
    from.of[k] = x[k];
    to.of[k] = dx[k].data;
    accumulate.of[k] = dx[k].accumulate;
  }
  const auto stream = static_cast<cudaStream_t>(device::current_stream().handle());
  map_kernels::backward<F, T, n><<<map_kernels::blocks_for(plan.numel), map_kernels::threads, 0, stream>>>(
      plan, function, from, dy, to, accumulate, std::make_index_sequence<n>());
  map_kernels::require_launched();
}

}  // namespace ops
}  // namespace trireme

#endif
