#include "trireme/ops/elementwise.hpp"

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/elementwise.hpp"

namespace trireme::ops {
template <typename T, typename D>
void activation(Activation kind, const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_shape("activation", "y", y.shape(), x.shape());
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(x.numel(), [&](std::int64_t first, std::int64_t count) {
    const Input<T> from(x.data() + first, count);
    Output<T> to(y.data() + first, count, false);
    kernels.activation(kind, from.data(), to.data(), count);
  });
}

template <typename T, typename D>
void activation_backward(Activation kind, const Tensor<T, D>& x, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_shape("activation_backward", "dy", dy.shape(), x.shape());
  require_shape("activation_backward", "dx", dx.shape(), x.shape());
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(x.numel(), [&](std::int64_t first, std::int64_t count) {
    const Input<T> at(x.data() + first, count);
    const Input<T> upstream(dy.data() + first, count);
    Output<T> to(dx.data() + first, count, accumulate);
    kernels.activation_backward(kind, at.data(), upstream.data(), to.data(), count, accumulate);
  });
}

template <typename T, typename D>
void add(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c) {
  require_shape("add", "b", b.shape(), a.shape());
  require_shape("add", "c", c.shape(), a.shape());
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(a.numel(), [&](std::int64_t first, std::int64_t count) {
    const Input<T> left(a.data() + first, count);
    const Input<T> right(b.data() + first, count);
    Output<T> to(c.data() + first, count, false);
    kernels.add(left.data(), right.data(), to.data(), count);
  });
}

template <typename T, typename D>
void multiply(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, bool accumulate) {
  require_shape("multiply", "b", b.shape(), a.shape());
  require_shape("multiply", "c", c.shape(), a.shape());
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(a.numel(), [&](std::int64_t first, std::int64_t count) {
    const Input<T> left(a.data() + first, count);
    const Input<T> right(b.data() + first, count);
    Output<T> to(c.data() + first, count, accumulate);
    kernels.multiply(left.data(), right.data(), to.data(), count, accumulate);
  });
}

template <typename T, typename D>
void scale(const Tensor<T, D>& a, Accumulate<T> factor, Tensor<T, D>& c, bool accumulate) {
  require_shape("scale", "c", c.shape(), a.shape());
  const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(a.numel(), [&](std::int64_t first, std::int64_t count) {
    const Input<T> from(a.data() + first, count);
    Output<T> to(c.data() + first, count, accumulate);
    kernels.scale(from.data(), factor, to.data(), count, accumulate);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                        \
  template void activation(Activation, const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                       \
  template void activation_backward(Activation, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool); \
  template void add(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                   \
  template void multiply(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool);                        \
  template void scale(const Tensor<T, Cpu>&, Accumulate<T>, Tensor<T, Cpu>&, bool);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
