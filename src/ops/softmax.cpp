#include "trireme/ops/softmax.hpp"

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/softmax.hpp"

namespace trireme::ops {
namespace {

// y = kernel(x), row by row.
template <typename T, typename Kernel>
void forward(std::string_view op, Kernel kernel, const Tensor<T, Cpu>& x, Tensor<T, Cpu>& y) {
  require(x.shape().size() > 0 && x.shape().back() > 0, "{}: the last dim of {} is empty", op, x.shape());
  require_shape(op, "y", y.shape(), x.shape());
  const std::int64_t width = x.shape().back();
  parallel_rows(x.shape().rows(), width, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> from(width), to(width);
    for (std::int64_t place = begin * width; place < end * width; place += width) {
      kernel(from.read(x.data() + place), to.place(y.data() + place), width);
      to.write(y.data() + place);
    }
  });
}

// dx = kernel(y, dy) or more, row by row.
template <typename T, typename Kernel>
void backward(std::string_view op, Kernel kernel, const Tensor<T, Cpu>& y, const Tensor<T, Cpu>& dy, Tensor<T, Cpu>& dx,
              bool accumulate) {
  require(y.shape().size() > 0 && y.shape().back() > 0, "{}: the last dim of {} is empty", op, y.shape());
  require_shape(op, "dy", dy.shape(), y.shape());
  require_shape(op, "dx", dx.shape(), y.shape());
  const std::int64_t width = y.shape().back();
  parallel_rows(y.shape().rows(), width, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> results(width), upstream(width), to(width);
    for (std::int64_t place = begin * width; place < end * width; place += width) {
      if (accumulate) to.read(dx.data() + place);
      kernel(results.read(y.data() + place), upstream.read(dy.data() + place), to.place(dx.data() + place), width, accumulate);
      to.write(dx.data() + place);
    }
  });
}

}  // namespace

template <typename T, typename D>
void softmax(const Tensor<T, D>& x, Tensor<T, D>& y) {
  forward("softmax", softmax_kernels().of<Accumulate<T>>().probabilities, x, y);
}

template <typename T, typename D>
void softmax_backward(const Tensor<T, D>& y, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  backward("softmax_backward", softmax_kernels().of<Accumulate<T>>().softmax_backward, y, dy, dx, accumulate);
}

template <typename T, typename D>
void log_softmax(const Tensor<T, D>& x, Tensor<T, D>& y) {
  forward("log_softmax", softmax_kernels().of<Accumulate<T>>().log_probabilities, x, y);
}

template <typename T, typename D>
void log_softmax_backward(const Tensor<T, D>& y, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  backward("log_softmax_backward", softmax_kernels().of<Accumulate<T>>().log_softmax_backward, y, dy, dx, accumulate);
}

#define TRIREME_INSTANTIATE(T)                                                                         \
  template void softmax(const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                       \
  template void softmax_backward(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool); \
  template void log_softmax(const Tensor<T, Cpu>&, Tensor<T, Cpu>&);                                   \
  template void log_softmax_backward(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, bool);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
