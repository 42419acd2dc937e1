#include "ops/kernels/parametric.hpp"

#include "ops/check.hpp"
#include "ops/parallel.hpp"
#include "trireme/ops/elementwise.hpp"

namespace trireme::ops {
namespace {

void require_valid(const SoftplusOptions& options) {
  require(options.beta > 0, "softplus: beta is {}, but must be above 0", options.beta);
}

}  // namespace

template <typename T, typename D>
void leaky_relu(const Tensor<T, D>& x, double slope, Tensor<T, D>& y) {
  require_shape("leaky_relu", "y", y.shape(), x.shape());
  const auto& kernels = parametric_kernels().of<T>();
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernels.leaky_relu(x.data() + begin, static_cast<T>(slope), y.data() + begin, end - begin);
  });
}

template <typename T, typename D>
void leaky_relu_backward(const Tensor<T, D>& x, double slope, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_shape("leaky_relu_backward", "dy", dy.shape(), x.shape());
  require_shape("leaky_relu_backward", "dx", dx.shape(), x.shape());
  const auto& kernels = parametric_kernels().of<T>();
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernels.leaky_relu_backward(x.data() + begin, static_cast<T>(slope), dy.data() + begin, dx.data() + begin, end - begin,
                                accumulate);
  });
}

template <typename T, typename D>
void softplus(const Tensor<T, D>& x, const SoftplusOptions& options, Tensor<T, D>& y) {
  require_valid(options);
  require_shape("softplus", "y", y.shape(), x.shape());
  const auto& kernels = parametric_kernels().of<T>();
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernels.softplus(x.data() + begin, static_cast<T>(options.beta), static_cast<T>(options.threshold), y.data() + begin,
                     end - begin);
  });
}

template <typename T, typename D>
void softplus_backward(const Tensor<T, D>& x, const SoftplusOptions& options, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                       bool accumulate) {
  require_valid(options);
  require_shape("softplus_backward", "dy", dy.shape(), x.shape());
  require_shape("softplus_backward", "dx", dx.shape(), x.shape());
  const auto& kernels = parametric_kernels().of<T>();
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    kernels.softplus_backward(x.data() + begin, static_cast<T>(options.beta), static_cast<T>(options.threshold),
                              dy.data() + begin, dx.data() + begin, end - begin, accumulate);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                    \
  template void leaky_relu(const Tensor<T, Cpu>&, double, Tensor<T, Cpu>&);                                       \
  template void leaky_relu_backward(const Tensor<T, Cpu>&, double, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool); \
  template void softplus(const Tensor<T, Cpu>&, const SoftplusOptions&, Tensor<T, Cpu>&);                         \
  template void softplus_backward(const Tensor<T, Cpu>&, const SoftplusOptions&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
