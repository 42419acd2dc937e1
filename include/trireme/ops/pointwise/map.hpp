#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/device/isa.hpp"
#include "trireme/math/dual.hpp"
#include "trireme/ops/pointwise/broadcast.hpp"
#include "trireme/ops/pointwise/elements.hpp"
#include "trireme/ops/pointwise/map_cuda.hpp"
#include "trireme/tensor/tensor.hpp"

// Computes an elementwise expression in one pass over tensors. Their shapes are broadcast:
//
//   const auto y = map([](auto gate, auto up) { return gate * sigmoid(gate) * up; }, gate, up);
//
// The function is called for each element, by several threads, with math::Dual arguments. The function may use +, -, *, /,
// comparisons, numbers, captured values, and exp, expm1, log, log1p, sqrt, sin, cos, tanh, sigmoid, erf, abs, min, max, pow
// and select(condition, a, b). float16 and bfloat16 are computed in float. autograd/operations/map.hpp has map() of Variables,
// which takes the derivative from the same expression.
//
// The loops are compiled with the caller's file, once for each instruction set; the program uses the best set that the
// processor has. The CMake function trireme_map_sources(TARGET file.cpp...) of the package compiles the file so that the loops
// are vectorized; without this function the results are the same, but loops may be slower. For tensors on a GPU, write the
// expression in a .cu file, as `[] __device__ (auto gate, auto up) { ... }`. A struct with a TRIREME_HOST_DEVICE operator()
// works on both devices.
namespace trireme TRIREME_EXPORT {
namespace ops {

// Loops that compute the caller's expression `function` for `count` elements.
template <typename A>
using MapForward = void (*)(const void* function, const A* const* x, A* y, std::int64_t count);
template <typename A>
using MapBackward = void (*)(const void* function, const A* const* x, const A* dy, A* const* dx, std::int64_t count);

// The gradient of one operand, in the shape of the result. data is null if the gradient is not needed.
template <typename T>
struct MapGradient {
  T* data = nullptr;
  bool accumulate = false;
};

// Runs a MapForward or MapBackward with threads, broadcasting and conversion of element types.
template <typename T>
TRIREME_EXPORT void run_map(const Broadcast& plan, std::span<const T* const> x, T* y, const void* function,
                            MapForward<Accumulate<T>> loop);
template <typename T>
TRIREME_EXPORT void run_map_backward(const Broadcast& plan, std::span<const T* const> x, const T* dy,
                                     std::span<const MapGradient<T>> dx, const void* function, MapBackward<Accumulate<T>> loop);

}  // namespace ops

namespace detail {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__)
#define TRIREME_MAP_HAS_ISAS
#define TRIREME_MAP_AVX2 __attribute__((target("avx2,fma"), flatten))
#ifdef __clang__
#define TRIREME_MAP_AVX512 __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl"), flatten))
#else
#define TRIREME_MAP_AVX512 \
  __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"), flatten))
#endif
#endif
#ifdef TRIREME_MAP_SIMD  // defined by trireme_map_sources()
#define TRIREME_MAP_LOOP _Pragma("omp simd")
#elif defined(__clang__) || defined(__CUDACC__)
#define TRIREME_MAP_LOOP
#else
#define TRIREME_MAP_LOOP _Pragma("GCC ivdep")
#endif

template <typename F, typename A, std::size_t n>
class MapLoops {
 public:
  static ops::MapForward<A> forward() {
#ifdef TRIREME_MAP_HAS_ISAS
    if (device::current_isa() == device::Isa::avx512) return forward_avx512;
    if (device::current_isa() == device::Isa::avx2) return forward_avx2;
#endif
    return forward_baseline;
  }
  static ops::MapBackward<A> backward() {
#ifdef TRIREME_MAP_HAS_ISAS
    if (device::current_isa() == device::Isa::avx512) return backward_avx512;
    if (device::current_isa() == device::Isa::avx2) return backward_avx2;
#endif
    return backward_baseline;
  }

 private:
  static void forward_baseline(const void* function, const A* const* x, A* y, std::int64_t count) {
    run(function, x, y, count, std::make_index_sequence<n>());
  }
  static void backward_baseline(const void* function, const A* const* x, const A* dy, A* const* dx, std::int64_t count) {
    run(function, x, dy, dx, count, std::make_index_sequence<n>());
  }
#ifdef TRIREME_MAP_HAS_ISAS
  TRIREME_MAP_AVX2 static void forward_avx2(const void* function, const A* const* x, A* y, std::int64_t count) {
    run(function, x, y, count, std::make_index_sequence<n>());
  }
  TRIREME_MAP_AVX512 static void forward_avx512(const void* function, const A* const* x, A* y, std::int64_t count) {
    run(function, x, y, count, std::make_index_sequence<n>());
  }
  TRIREME_MAP_AVX2 static void backward_avx2(const void* function, const A* const* x, const A* dy, A* const* dx,
                                             std::int64_t count) {
    run(function, x, dy, dx, count, std::make_index_sequence<n>());
  }
  TRIREME_MAP_AVX512 static void backward_avx512(const void* function, const A* const* x, const A* dy, A* const* dx,
                                                 std::int64_t count) {
    run(function, x, dy, dx, count, std::make_index_sequence<n>());
  }
#endif

  template <std::size_t... k>
  [[gnu::always_inline]] static void run(const void* function, const A* const* x, A* __restrict__ y, std::int64_t count,
                                         std::index_sequence<k...>) {
    const F& f = *static_cast<const F*>(function);
    const A* const from[] = {x[k]...};
    TRIREME_MAP_LOOP
    for (std::int64_t i = 0; i < count; ++i) y[i] = math::Dual<A, 0>(f(math::Dual<A, 0>(from[k][i])...)).value;
  }
  template <std::size_t... k>
  [[gnu::always_inline]] static void run(const void* function, const A* const* x, const A* __restrict__ dy, A* const* dx,
                                         std::int64_t count, std::index_sequence<k...>) {
    const F& f = *static_cast<const F*>(function);
    const A* const from[] = {x[k]...};
    A* const to[] = {dx[k]...};
    TRIREME_MAP_LOOP
    for (std::int64_t i = 0; i < count; ++i) {
      const math::Dual<A, n> y(f(math::Dual<A, n>::variable(from[k][i], k)...));
      ((to[k][i] = dy[i] * y.slope[k]), ...);
    }
  }
};

template <typename D>
inline constexpr bool can_map = std::is_same_v<D, Cpu>;
#ifdef __CUDACC__
template <>
inline constexpr bool can_map<Cuda> = true;
#endif

}  // namespace detail

namespace ops {

// y = function(x[0], x[1], ...), element by element. All x are broadcast to the shape of y.
template <typename F, typename T, typename D, std::size_t n>
void map(const F& function, std::span<const Tensor<T, D>, n> x, Tensor<T, D>& y) {
  static_assert(trireme::detail::can_map<D>,
                "map() of a GPU's tensors is compiled by nvcc: put the expression into a .cu file");
  std::array<Shape, n> shapes;
  std::array<const T*, n> data{};
  for (std::size_t k = 0; k < n; ++k) {
    shapes[k] = x[k].shape();
    data[k] = x[k].data();
  }
  y.count_change();
  if (y.numel() == 0) return;
  const Broadcast plan(y.shape(), shapes.data(), static_cast<int>(n));
  if constexpr (std::is_same_v<D, Cpu>) {
    run_map<T>(plan, data, y.data(), &function, trireme::detail::MapLoops<F, Accumulate<T>, n>::forward());
  } else {
    launch_map(plan, function, data, y.data());
  }
}

// dx[k] = dy * the derivative with respect to operand k, or += with accumulate[k]. Each dx[k] has the shape of dy, or is
// undefined.
template <typename F, typename T, typename D, std::size_t n>
void map_backward(const F& function, std::span<const Tensor<T, D>, n> x, const Tensor<T, D>& dy,
                  const std::array<Tensor<T, D>, n>& dx, const std::array<bool, n>& accumulate) {
  std::array<Shape, n> shapes;
  std::array<const T*, n> data{};
  std::array<MapGradient<T>, n> gradients;
  for (std::size_t k = 0; k < n; ++k) {
    shapes[k] = x[k].shape();
    data[k] = x[k].data();
    gradients[k] = {.data = dx[k].data(), .accumulate = accumulate[k]};
  }
  if (dy.numel() == 0) return;
  const Broadcast plan(dy.shape(), shapes.data(), static_cast<int>(n));
  if constexpr (std::is_same_v<D, Cpu>) {
    run_map_backward<T>(plan, data, dy.data(), gradients, &function,
                        trireme::detail::MapLoops<F, Accumulate<T>, n>::backward());
  } else {
    launch_map_backward(plan, function, data, dy.data(), gradients);
  }
}

template <typename T, typename D, std::size_t n>
Shape map_shape(std::span<const Tensor<T, D>, n> x) {
  Shape shape;
  for (std::size_t k = 0; k < n; ++k) {
    require(x[k].defined(), "map: operand {} of {} is undefined", k + 1, n);
    shape = broadcast_shape("map", shape, x[k].shape());
  }
  return shape;
}

}  // namespace ops

// All tensors have the same element type: float, double, bfloat16 or float16.
template <typename F, typename T, typename D, std::same_as<Tensor<T, D>>... More>
requires detail::is_float_element<T> Tensor<T, D> map(const F& function, const Tensor<T, D>& x, const More&... more) {
  const std::array<Tensor<T, D>, 1 + sizeof...(More)> operands{x, more...};
  Tensor<T, D> y(ops::map_shape(std::span(operands)));
  ops::map(function, std::span(operands), y);
  return y;
}

}  // namespace trireme
