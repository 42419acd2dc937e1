#include "trireme/autograd/images.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme {
namespace {

ops::Extent2d pixels_of(std::string_view op, const Shape& x) {
  require(x.size() == 4, "{}: x {} needs [batch, height, width, channels]", op, x);
  return {x[1], x[2]};
}

Shape with_pixels(const Shape& x, const ops::Extent2d& pixels) { return {x[0], pixels.height, pixels.width, x[3]}; }

// forward(x, y, argmax) and backward(dy, argmax, dx, accumulate).
template <typename T, typename D, typename Forward, typename Backward>
Variable<T, D> record_max(std::string_view op, const Variable<T, D>& x, const ops::Extent2d& output, const Forward& forward,
                          const Backward& backward) {
  Tensor<T, D> y(with_pixels(x.shape(), output));
  ops::PoolArgmax<D> argmax(y.shape());
  forward(x.value(), y, argmax);
  return record(op, std::move(y), {x.slot()}, [argmax, backward, dx = x.gradient()](const Tensor<T, D>& dy) {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { backward(dy, argmax, out, accumulate); });
  });
}

// forward(x, y) and backward(dy, dx, accumulate).
template <typename T, typename D, typename Forward, typename Backward>
Variable<T, D> record_average(std::string_view op, const Variable<T, D>& x, const ops::Extent2d& output, const Forward& forward,
                              const Backward& backward) {
  Tensor<T, D> y(with_pixels(x.shape(), output));
  forward(x.value(), y);
  return record(op, std::move(y), {x.slot()}, [backward, dx = x.gradient()](const Tensor<T, D>& dy) {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { backward(dy, out, accumulate); });
  });
}

}  // namespace

template <typename T, typename D>
Variable<T, D> max_pool2d(const Variable<T, D>& x, const ops::Pool2dOptions& options) {
  require_operands("max_pool2d", x);
  using Images = Tensor<T, D>;
  using Argmax = ops::PoolArgmax<D>;
  return record_max(
      "max_pool2d", x, ops::max_pool2d_extent(pixels_of("max_pool2d", x.shape()), options),
      [&](const Images& from, Images& y, Argmax& argmax) { ops::max_pool2d(from, options, y, argmax); },
      [options](const Images& dy, const Argmax& argmax, Images& dx, bool accumulate) {
        ops::max_pool2d_backward(dy, argmax, options, dx, accumulate);
      });
}

template <typename T, typename D>
Variable<T, D> avg_pool2d(const Variable<T, D>& x, const ops::AvgPool2dOptions& options) {
  require_operands("avg_pool2d", x);
  using Images = Tensor<T, D>;
  return record_average(
      "avg_pool2d", x, ops::avg_pool2d_extent(pixels_of("avg_pool2d", x.shape()), options),
      [&](const Images& from, Images& y) { ops::avg_pool2d(from, options, y); },
      [options](const Images& dy, Images& dx, bool accumulate) { ops::avg_pool2d_backward(dy, options, dx, accumulate); });
}

template <typename T, typename D>
Variable<T, D> adaptive_max_pool2d(const Variable<T, D>& x, const ops::Extent2d& output) {
  require_operands("adaptive_max_pool2d", x);
  pixels_of("adaptive_max_pool2d", x.shape());
  return record_max("adaptive_max_pool2d", x, output, ops::adaptive_max_pool2d<T, D>, ops::adaptive_max_pool2d_backward<T, D>);
}

template <typename T, typename D>
Variable<T, D> adaptive_avg_pool2d(const Variable<T, D>& x, const ops::Extent2d& output) {
  require_operands("adaptive_avg_pool2d", x);
  pixels_of("adaptive_avg_pool2d", x.shape());
  return record_average("adaptive_avg_pool2d", x, output, ops::adaptive_avg_pool2d<T, D>,
                        ops::adaptive_avg_pool2d_backward<T, D>);
}

#define TRIREME_INSTANTIATE(T)                                                                                        \
  template Variable<T, TRIREME_DEVICE> max_pool2d(const Variable<T, TRIREME_DEVICE>&, const ops::Pool2dOptions&);     \
  template Variable<T, TRIREME_DEVICE> avg_pool2d(const Variable<T, TRIREME_DEVICE>&, const ops::AvgPool2dOptions&);  \
  template Variable<T, TRIREME_DEVICE> adaptive_max_pool2d(const Variable<T, TRIREME_DEVICE>&, const ops::Extent2d&); \
  template Variable<T, TRIREME_DEVICE> adaptive_avg_pool2d(const Variable<T, TRIREME_DEVICE>&, const ops::Extent2d&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
