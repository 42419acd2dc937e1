#include "ops/elementwise/elementwise_kernels.hpp"
#include "ops/elementwise/elementwise_on.hpp"
#include "ops/elementwise/floats.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Elementwise<Cpu>::activation(Activation kind, std::int64_t numel, const T* x, T* y) {
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> from(x + first, count);
    Output<T> to(y + first, count, false);
    kernels.activation(kind, from.data(), to.data(), count);
  });
}

template <>
template <typename T>
void Elementwise<Cpu>::activation_backward(Activation kind, std::int64_t numel, const T* x, const T* dy, T* dx,
                                           bool accumulate) {
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> at(x + first, count);
    const Input<T> upstream(dy + first, count);
    Output<T> to(dx + first, count, accumulate);
    kernels.activation_backward(kind, at.data(), upstream.data(), to.data(), count, accumulate);
  });
}

template <>
template <typename T>
void Elementwise<Cpu>::gated(Activation kind, std::int64_t numel, const T* gate, const T* x, T* y) {
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> opens(gate + first, count);
    const Input<T> from(x + first, count);
    Output<T> to(y + first, count, false);
    kernels.gated(kind, opens.data(), from.data(), to.data(), count);
  });
}

template <>
template <typename T>
void Elementwise<Cpu>::gated_backward(Activation kind, std::int64_t numel, const T* gate, const T* x, const T* dy, T* dgate,
                                      bool accumulate_gate, T* dx, bool accumulate) {
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  // Computes both gradients of a piece while it is in the cache.
  parallel_elements(numel, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += piece_elements) {
      const std::int64_t count = std::min(piece_elements, end - begin);
      const Input<T> opens(gate + begin, count);
      const Input<T> upstream(dy + begin, count);
      if (dgate != nullptr) {
        const Input<T> from(x + begin, count);
        Output<T> to(dgate + begin, count, accumulate_gate);
        kernels.gate_gradient(kind, opens.data(), from.data(), upstream.data(), to.data(), count, accumulate_gate);
      }
      if (dx != nullptr) {
        Output<T> to(dx + begin, count, accumulate);
        kernels.gated_gradient(kind, opens.data(), upstream.data(), to.data(), count, accumulate);
      }
    }
  });
}

namespace {

template <typename T, typename Kernel>
void combine_elements(std::int64_t numel, const T* a, const T* b, T* c, const Kernel& kernel) {
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> left(a + first, count);
    const Input<T> right(b + first, count);
    Output<T> to(c + first, count, false);
    kernel(left.data(), right.data(), to.data(), count);
  });
}

}  // namespace

template <>
template <typename T>
void Elementwise<Cpu>::add(std::int64_t numel, const T* a, const T* b, T* c) {
  combine_elements(numel, a, b, c, elementwise_kernels().of<Accumulate<T>>().add);
}

template <>
template <typename T>
void Elementwise<Cpu>::subtract(std::int64_t numel, const T* a, const T* b, T* c) {
  combine_elements(numel, a, b, c, elementwise_kernels().of<Accumulate<T>>().subtract);
}

template <>
template <typename T>
void Elementwise<Cpu>::multiply(std::int64_t numel, const T* a, const T* b, T* c, bool accumulate) {
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> left(a + first, count);
    const Input<T> right(b + first, count);
    Output<T> to(c + first, count, accumulate);
    kernels.multiply(left.data(), right.data(), to.data(), count, accumulate);
  });
}

template <>
template <typename T>
void Elementwise<Cpu>::divide(std::int64_t numel, const T* a, const T* b, T* c, bool accumulate) {
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> dividend(a + first, count);
    const Input<T> divisor(b + first, count);
    Output<T> to(c + first, count, accumulate);
    kernels.divide(dividend.data(), divisor.data(), to.data(), count, accumulate);
  });
}

template <>
template <typename T>
void Elementwise<Cpu>::divide_backward_divisor(std::int64_t numel, const T* a, const T* b, const T* dy, T* db,
                                               bool accumulate) {
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> dividend(a + first, count);
    const Input<T> divisor(b + first, count);
    const Input<T> upstream(dy + first, count);
    Output<T> to(db + first, count, accumulate);
    kernels.divide_backward_divisor(dividend.data(), divisor.data(), upstream.data(), to.data(), count, accumulate);
  });
}

template <>
template <typename T>
void Elementwise<Cpu>::shift(std::int64_t numel, const T* a, Accumulate<T> summand, T* c) {
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> from(a + first, count);
    Output<T> to(c + first, count, false);
    kernels.shift(from.data(), summand, to.data(), count);
  });
}

template <>
template <typename T>
void Elementwise<Cpu>::scale(std::int64_t numel, const T* a, Accumulate<T> factor, T* c, bool accumulate) {
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    const Input<T> from(a + first, count);
    Output<T> to(c + first, count, accumulate);
    kernels.scale(from.data(), factor, to.data(), count, accumulate);
  });
}

TRIREME_INSTANTIATE(FLOATS, activation, Cpu)
TRIREME_INSTANTIATE(FLOATS, activation_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, gated_activation, Cpu)
TRIREME_INSTANTIATE(FLOATS, gated_activation_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, add, Cpu)
TRIREME_INSTANTIATE(FLOATS, subtract, Cpu)
TRIREME_INSTANTIATE(FLOATS, multiply, Cpu)
TRIREME_INSTANTIATE(FLOATS, divide, Cpu)
TRIREME_INSTANTIATE(FLOATS, divide_backward_divisor, Cpu)
TRIREME_INSTANTIATE(FLOATS, shift, Cpu)
TRIREME_INSTANTIATE(FLOATS, scale, Cpu)

}  // namespace trireme::ops
