#include "trireme/ops/elementwise.hpp"

#include "ops/check.hpp"
#include "ops/kernels/elementwise.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {

template <typename T, typename D>
void activation(Activation kind, const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_shape("activation", "y", y.shape(), x.shape());
  const auto& kernels = elementwise_kernels().of<T>();
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernels.activation(kind, x.data() + begin, y.data() + begin, end - begin);
  });
}

template <typename T, typename D>
void activation_backward(Activation kind, const Tensor<T, D>& x, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_shape("activation_backward", "dy", dy.shape(), x.shape());
  require_shape("activation_backward", "dx", dx.shape(), x.shape());
  const auto& kernels = elementwise_kernels().of<T>();
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernels.activation_backward(kind, x.data() + begin, dy.data() + begin, dx.data() + begin, end - begin, accumulate);
  });
}

template <typename T, typename D>
void add(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c) {
  require_shape("add", "b", b.shape(), a.shape());
  require_shape("add", "c", c.shape(), a.shape());
  const auto& kernels = elementwise_kernels().of<T>();
  parallel_elements(a.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernels.add(a.data() + begin, b.data() + begin, c.data() + begin, end - begin);
  });
}

template <typename T, typename D>
void multiply(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, bool accumulate) {
  require_shape("multiply", "b", b.shape(), a.shape());
  require_shape("multiply", "c", c.shape(), a.shape());
  const auto& kernels = elementwise_kernels().of<T>();
  parallel_elements(a.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernels.multiply(a.data() + begin, b.data() + begin, c.data() + begin, end - begin, accumulate);
  });
}

template <typename T, typename D>
void scale(const Tensor<T, D>& a, T factor, Tensor<T, D>& c, bool accumulate) {
  require_shape("scale", "c", c.shape(), a.shape());
  const auto& kernels = elementwise_kernels().of<T>();
  parallel_elements(a.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernels.scale(a.data() + begin, factor, c.data() + begin, end - begin, accumulate);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                        \
  template void activation(Activation, const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                       \
  template void activation_backward(Activation, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool); \
  template void add(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                   \
  template void multiply(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool);                        \
  template void scale(const Tensor<T, Cpu>&, T, Tensor<T, Cpu>&, bool);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
