#include "trireme/autograd/images.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme {
namespace {

void require_dims(std::string_view op, const Shape& x, const Shape& weight) {
  require(x.size() == 4 && weight.size() == 4,
          "{}: x {} needs [batch, height, width, channels] and the weight {} needs 4 dims, the last two those of the kernel",
          op, x, weight);
}

}  // namespace

template <typename T, typename D>
Variable<T, D> conv2d(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                      const Variable<Accumulate<T>, D>& bias, const ops::Conv2dOptions& options) {
  require_operands("conv2d", x, weight, optional(bias));
  using A = Accumulate<T>;
  require_dims("conv2d", x.shape(), weight.shape());
  const auto extent = ops::conv2d_extent({x.shape()[1], x.shape()[2]}, {weight.shape()[2], weight.shape()[3]}, options);
  Tensor<T, D> y({x.shape()[0], extent.height, extent.width, weight.shape()[0]});
  ops::conv2d(x.value(), weight.value(), bias.value(), options, y);
  return record_split(
      "conv2d", std::move(y), {x.slot()}, {weight.slot(), bias.slot()},
      [weight = weight.value(), gradient = x.gradient(), options](const Tensor<T, D>& dy) {
        gradient.contribute(
            [&](Tensor<T, D>& dx, bool accumulate) { ops::conv2d_backward_data(dy, weight, options, dx, accumulate); });
      },
      [x = x.value(), dweight = weight.gradient(), dbias = bias.gradient(), options](const Tensor<T, D>& dy) {
        dweight.contribute(
            [&](Tensor<A, D>& dw, bool accumulate) { ops::conv2d_backward_weight(x, dy, options, dw, accumulate); });
        dbias.contribute([&](Tensor<A, D>& db, bool accumulate) { ops::sum_rows(dy, db, accumulate); });
      });
}

template <typename T, typename D>
Variable<T, D> conv_transpose2d(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                const Variable<Accumulate<T>, D>& bias, const ops::ConvTranspose2dOptions& options) {
  require_operands("conv_transpose2d", x, weight, optional(bias));
  using A = Accumulate<T>;
  require_dims("conv_transpose2d", x.shape(), weight.shape());
  const auto extent =
      ops::conv_transpose2d_extent({x.shape()[1], x.shape()[2]}, {weight.shape()[2], weight.shape()[3]}, options);
  Tensor<T, D> y({x.shape()[0], extent.height, extent.width, weight.shape()[1] * options.groups});
  ops::conv_transpose2d(x.value(), weight.value(), bias.value(), options, y);
  return record_split(
      "conv_transpose2d", std::move(y), {x.slot()}, {weight.slot(), bias.slot()},
      [weight = weight.value(), gradient = x.gradient(), options](const Tensor<T, D>& dy) {
        gradient.contribute([&](Tensor<T, D>& dx, bool accumulate) {
          ops::conv_transpose2d_backward_data(dy, weight, options, dx, accumulate);
        });
      },
      [x = x.value(), dweight = weight.gradient(), dbias = bias.gradient(), options](const Tensor<T, D>& dy) {
        dweight.contribute(
            [&](Tensor<A, D>& dw, bool accumulate) { ops::conv_transpose2d_backward_weight(x, dy, options, dw, accumulate); });
        dbias.contribute([&](Tensor<A, D>& db, bool accumulate) { ops::sum_rows(dy, db, accumulate); });
      });
}

#define TRIREME_INSTANTIATE(T, A)                                                                                        \
  template Variable<T, TRIREME_DEVICE> conv2d(const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE, A>&, \
                                              const Variable<A, TRIREME_DEVICE>&, const ops::Conv2dOptions&);            \
  template Variable<T, TRIREME_DEVICE> conv_transpose2d(                                                                 \
      const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE, A>&, const Variable<A, TRIREME_DEVICE>&,     \
      const ops::ConvTranspose2dOptions&)
TRIREME_INSTANTIATE(float, float);
TRIREME_INSTANTIATE(double, double);
TRIREME_INSTANTIATE(bfloat16, float);
TRIREME_INSTANTIATE(float16, float);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
