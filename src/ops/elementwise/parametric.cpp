#include "ops/elementwise/floats.hpp"
#include "ops/elementwise/parametric_kernels.hpp"
#include "ops/elementwise/parametric_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Parametric<Cpu>::leaky_relu(std::int64_t numel, const T* x, Accumulate<T> slope, T* y) {
  const auto& kernels = parametric_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> from(x + first, count);
    Output<T> to(y + first, count, false);
    kernels.leaky_relu(from.data(), slope, to.data(), count);
  });
}

template <>
template <typename T>
void Parametric<Cpu>::leaky_relu_backward(std::int64_t numel, const T* x, Accumulate<T> slope, const T* dy, T* dx,
                                          bool accumulate) {
  const auto& kernels = parametric_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> at(x + first, count);
    const Input<T> upstream(dy + first, count);
    Output<T> to(dx + first, count, accumulate);
    kernels.leaky_relu_backward(at.data(), slope, upstream.data(), to.data(), count, accumulate);
  });
}

template <>
template <typename T>
void Parametric<Cpu>::softplus(std::int64_t numel, const T* x, Accumulate<T> beta, Accumulate<T> threshold, T* y) {
  const auto& kernels = parametric_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> from(x + first, count);
    Output<T> to(y + first, count, false);
    kernels.softplus(from.data(), beta, threshold, to.data(), count);
  });
}

template <>
template <typename T>
void Parametric<Cpu>::softplus_backward(std::int64_t numel, const T* x, Accumulate<T> beta, Accumulate<T> threshold,
                                        const T* dy, T* dx, bool accumulate) {
  const auto& kernels = parametric_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> at(x + first, count);
    const Input<T> upstream(dy + first, count);
    Output<T> to(dx + first, count, accumulate);
    kernels.softplus_backward(at.data(), beta, threshold, upstream.data(), to.data(), count, accumulate);
  });
}

TRIREME_INSTANTIATE(FLOATS, leaky_relu, Cpu)
TRIREME_INSTANTIATE(FLOATS, leaky_relu_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, softplus, Cpu)
TRIREME_INSTANTIATE(FLOATS, softplus_backward, Cpu)

}  // namespace trireme::ops
