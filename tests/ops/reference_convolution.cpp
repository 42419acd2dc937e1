#include "ops/reference_fixture.hpp"
#include "trireme/ops/convolution.hpp"
#include "trireme/ops/reduce.hpp"

namespace trireme::ops {
namespace {

// Fixtures hold [batch, channels, height, width].
Tensor<float> to_channels_last(const Tensor<float>& x) {
  const std::int64_t channels = x.dim(1), pixels = x.dim(2) * x.dim(3);
  Tensor<float> y({x.dim(0), x.dim(2), x.dim(3), channels});
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    y.data()[(i / (channels * pixels) * pixels + i % pixels) * channels + i / pixels % channels] = x.data()[i];
  }
  return y;
}
Tensor<float> to_channels_first(const Tensor<float>& x) {
  const std::int64_t channels = x.dim(3), pixels = x.dim(1) * x.dim(2);
  Tensor<float> y({x.dim(0), channels, x.dim(1), x.dim(2)});
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    y.data()[(i / (channels * pixels) * channels + i % channels) * pixels + i / channels % pixels] = x.data()[i];
  }
  return y;
}

// One number for both dims, or two.
Extent2d extent(const nlohmann::json& value) {
  if (value.is_array()) return {value.at(0), value.at(1)};
  return {value, value};
}

Conv2dOptions options_of(const nlohmann::json& hyper) {
  return {.stride = extent(hyper.at("stride")),
          .padding = extent(hyper.at("padding")),
          .dilation = extent(hyper.at("dilation")),
          .groups = hyper.at("groups")};
}

}  // namespace

bool run_conv2d(OpFixture& fixture) {
  const auto options = options_of(fixture.hyper());
  const auto x = to_channels_last(fixture.input("x"));
  const auto dy = to_channels_last(fixture.input("gout_out"));
  const auto weight = fixture.input("weight");
  Tensor<float> y(dy.shape()), dx(x.shape()), dweight(weight.shape()), dbias({weight.dim(0)});
  conv2d(x, weight, fixture.input_or_undefined("bias"), options, y);
  conv2d_backward_data(dy, weight, options, dx, false);
  conv2d_backward_weight(x, dy, options, dweight, false);
  sum_rows(dy, dbias, false);
  fixture.result("out", to_channels_first(y));
  fixture.result("grad_x", to_channels_first(dx));
  fixture.result("grad_weight", dweight);
  fixture.result("grad_bias", dbias);
  return true;
}

bool run_conv_transpose2d(OpFixture& fixture) {
  const auto options = options_of(fixture.hyper());
  const auto x = to_channels_last(fixture.input("x"));
  const auto dy = to_channels_last(fixture.input("gout_out"));
  const auto weight = fixture.input("weight");
  Tensor<float> y(dy.shape()), dx(x.shape()), dweight(weight.shape()), dbias({dy.dim(3)});
  if (fixture.has("bias")) {
    const auto bias = fixture.input("bias");
    for (std::int64_t i = 0; i < y.numel(); ++i) y.data()[i] = bias.data()[i % bias.numel()];
  }
  conv2d_backward_data(x, weight, options, y, fixture.has("bias"));
  conv2d(dy, weight, {}, options, dx);
  conv2d_backward_weight(dy, x, options, dweight, false);
  sum_rows(dy, dbias, false);
  fixture.result("out", to_channels_first(y));
  fixture.result("grad_x", to_channels_first(dx));
  fixture.result("grad_weight", dweight);
  fixture.result("grad_bias", dbias);
  return true;
}

}  // namespace trireme::ops
