#include "trireme/autograd/operations/convolution.hpp"

#include "precision/instantiate.hpp"
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

struct Conv2d {
  static constexpr std::string_view name = "conv2d";
  ops::Conv2dOptions options;

  void forward(const auto& x, const auto& weight, const auto& bias, auto& y) const { ops::conv2d(x, weight, bias, options, y); }
  void input_gradients(const auto& dy, const auto&, const auto& weight, const auto& dx, const auto&...) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::conv2d_backward_data(dy, weight, options, out, accumulate); });
  }
  void weight_gradients(const auto& dy, const auto& x, const auto&, const auto&, const auto& dweight, const auto& dbias) const {
    dweight.contribute([&](auto& out, bool accumulate) { ops::conv2d_backward_weight(x, dy, options, out, accumulate); });
    dbias.contribute([&](auto& out, bool accumulate) { ops::sum_rows(dy, out, accumulate); });
  }
  void describe(Attributes& to) const {
    to["stride"] = std::vector{options.stride.height, options.stride.width};
    to["padding"] = std::vector{options.padding.height, options.padding.width};
    to["dilation"] = std::vector{options.dilation.height, options.dilation.width};
    to["groups"] = options.groups;
  }
};

struct ConvTranspose2d {
  static constexpr std::string_view name = "conv_transpose2d";
  ops::ConvTranspose2dOptions options;

  void forward(const auto& x, const auto& weight, const auto& bias, auto& y) const {
    ops::conv_transpose2d(x, weight, bias, options, y);
  }
  void input_gradients(const auto& dy, const auto&, const auto& weight, const auto& dx, const auto&...) const {
    dx.contribute(
        [&](auto& out, bool accumulate) { ops::conv_transpose2d_backward_data(dy, weight, options, out, accumulate); });
  }
  void weight_gradients(const auto& dy, const auto& x, const auto&, const auto&, const auto& dweight, const auto& dbias) const {
    dweight.contribute(
        [&](auto& out, bool accumulate) { ops::conv_transpose2d_backward_weight(x, dy, options, out, accumulate); });
    dbias.contribute([&](auto& out, bool accumulate) { ops::sum_rows(dy, out, accumulate); });
  }
  void describe(Attributes& to) const {
    to["stride"] = std::vector{options.stride.height, options.stride.width};
    to["padding"] = std::vector{options.padding.height, options.padding.width};
    to["output_padding"] = std::vector{options.output_padding.height, options.output_padding.width};
    to["dilation"] = std::vector{options.dilation.height, options.dilation.width};
    to["groups"] = options.groups;
  }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> conv2d(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                      const Variable<Accumulate<T>, D>& bias, const ops::Conv2dOptions& options) {
  const auto result = [&] {
    require_dims("conv2d", x.shape(), weight.shape());
    const auto extent = ops::conv2d_extent({x.shape()[1], x.shape()[2]}, {weight.shape()[2], weight.shape()[3]}, options);
    return Result<T, D>{{x.shape()[0], extent.height, extent.width, weight.shape()[0]}};
  };
  return record(Conv2d{options}, result, kept(x), kept(trireme::weight(weight)), trireme::weight(optional(bias)));
}

template <typename T, typename D>
Variable<T, D> conv_transpose2d(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                const Variable<Accumulate<T>, D>& bias, const ops::ConvTranspose2dOptions& options) {
  const auto result = [&] {
    require_dims("conv_transpose2d", x.shape(), weight.shape());
    const auto extent =
        ops::conv_transpose2d_extent({x.shape()[1], x.shape()[2]}, {weight.shape()[2], weight.shape()[3]}, options);
    return Result<T, D>{{x.shape()[0], extent.height, extent.width, weight.shape()[1] * options.groups}};
  };
  return record(ConvTranspose2d{options}, result, kept(x), kept(trireme::weight(weight)), trireme::weight(optional(bias)));
}

TRIREME_INSTANTIATE(FLOATS, conv2d, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, conv_transpose2d, TRIREME_DEVICE)

}  // namespace trireme
