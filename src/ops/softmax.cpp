#include "trireme/ops/softmax.hpp"

#include "ops/check.hpp"
#include "ops/kernels/softmax.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {
namespace {

template <typename T, typename Row>
void for_each_row(std::string_view op, const Tensor<T, Cpu>& x, const Row& row) {
  require(x.shape().size() > 0 && x.shape().back() > 0, "{}: the last dim of {} is empty", op, x.shape());
  const std::int64_t width = x.shape().back();
  parallel_rows(x.shape().rows(), width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) row(index * width, width);
  });
}

}  // namespace

template <typename T, typename D>
void softmax(const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_shape("softmax", "y", y.shape(), x.shape());
  const auto& kernels = softmax_kernels().of<T>();
  for_each_row("softmax", x, [&](std::int64_t place, std::int64_t width) {
    kernels.probabilities(x.data() + place, y.data() + place, width);
  });
}

template <typename T, typename D>
void softmax_backward(const Tensor<T, D>& y, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_shape("softmax_backward", "dy", dy.shape(), y.shape());
  require_shape("softmax_backward", "dx", dx.shape(), y.shape());
  const auto& kernels = softmax_kernels().of<T>();
  for_each_row("softmax_backward", y, [&](std::int64_t place, std::int64_t width) {
    kernels.softmax_backward(y.data() + place, dy.data() + place, dx.data() + place, width, accumulate);
  });
}

template <typename T, typename D>
void log_softmax(const Tensor<T, D>& x, Tensor<T, D>& y) {
  require_shape("log_softmax", "y", y.shape(), x.shape());
  const auto& kernels = softmax_kernels().of<T>();
  for_each_row("log_softmax", x, [&](std::int64_t place, std::int64_t width) {
    kernels.log_probabilities(x.data() + place, y.data() + place, width);
  });
}

template <typename T, typename D>
void log_softmax_backward(const Tensor<T, D>& y, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_shape("log_softmax_backward", "dy", dy.shape(), y.shape());
  require_shape("log_softmax_backward", "dx", dx.shape(), y.shape());
  const auto& kernels = softmax_kernels().of<T>();
  for_each_row("log_softmax_backward", y, [&](std::int64_t place, std::int64_t width) {
    kernels.log_softmax_backward(y.data() + place, dy.data() + place, dx.data() + place, width, accumulate);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                         \
  template void softmax(const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                       \
  template void softmax_backward(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool); \
  template void log_softmax(const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                   \
  template void log_softmax_backward(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
