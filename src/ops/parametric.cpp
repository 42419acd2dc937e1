#include "ops/kernels/parametric.hpp"

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "trireme/ops/elementwise.hpp"

namespace trireme::ops {
namespace {

void require_valid(const SoftplusOptions& options) {
  require(options.beta > 0, "softplus: beta is {}, but must be above 0", options.beta);
}

}  // namespace

template <typename T, typename D>
void leaky_relu(const Tensor<T, D>& x, double slope, Tensor<T, D>& y) {
  using A = Accumulate<T>;
  require_shape("leaky_relu", "y", y.shape(), x.shape());
  const auto& kernels = parametric_kernels().of<A>();
  parallel_pieces<T>(x.numel(), [&](std::int64_t first, std::int64_t count) {
    const Input<T> from(x.data() + first, count);
    Output<T> to(y.data() + first, count, false);
    kernels.leaky_relu(from.data(), static_cast<A>(slope), to.data(), count);
  });
}

template <typename T, typename D>
void leaky_relu_backward(const Tensor<T, D>& x, double slope, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  using A = Accumulate<T>;
  require_shape("leaky_relu_backward", "dy", dy.shape(), x.shape());
  require_shape("leaky_relu_backward", "dx", dx.shape(), x.shape());
  const auto& kernels = parametric_kernels().of<A>();
  parallel_pieces<T>(x.numel(), [&](std::int64_t first, std::int64_t count) {
    const Input<T> at(x.data() + first, count);
    const Input<T> upstream(dy.data() + first, count);
    Output<T> to(dx.data() + first, count, accumulate);
    kernels.leaky_relu_backward(at.data(), static_cast<A>(slope), upstream.data(), to.data(), count, accumulate);
  });
}

template <typename T, typename D>
void softplus(const Tensor<T, D>& x, const SoftplusOptions& options, Tensor<T, D>& y) {
  using A = Accumulate<T>;
  require_valid(options);
  require_shape("softplus", "y", y.shape(), x.shape());
  const auto& kernels = parametric_kernels().of<A>();
  parallel_pieces<T>(x.numel(), [&](std::int64_t first, std::int64_t count) {
    const Input<T> from(x.data() + first, count);
    Output<T> to(y.data() + first, count, false);
    kernels.softplus(from.data(), static_cast<A>(options.beta), static_cast<A>(options.threshold), to.data(), count);
  });
}

template <typename T, typename D>
void softplus_backward(const Tensor<T, D>& x, const SoftplusOptions& options, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                       bool accumulate) {
  using A = Accumulate<T>;
  require_valid(options);
  require_shape("softplus_backward", "dy", dy.shape(), x.shape());
  require_shape("softplus_backward", "dx", dx.shape(), x.shape());
  const auto& kernels = parametric_kernels().of<A>();
  parallel_pieces<T>(x.numel(), [&](std::int64_t first, std::int64_t count) {
    const Input<T> at(x.data() + first, count);
    const Input<T> upstream(dy.data() + first, count);
    Output<T> to(dx.data() + first, count, accumulate);
    kernels.softplus_backward(at.data(), static_cast<A>(options.beta), static_cast<A>(options.threshold), upstream.data(),
                              to.data(), count, accumulate);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                    \
  template void leaky_relu(const Tensor<T, Cpu>&, double, Tensor<T, Cpu>&);                                       \
  template void leaky_relu_backward(const Tensor<T, Cpu>&, double, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool); \
  template void softplus(const Tensor<T, Cpu>&, const SoftplusOptions&, Tensor<T, Cpu>&);                         \
  template void softplus_backward(const Tensor<T, Cpu>&, const SoftplusOptions&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
