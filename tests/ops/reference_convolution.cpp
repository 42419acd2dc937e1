#include "ops/reference_fixture.hpp"
#include "trireme/ops/convolution/convolution.hpp"
#include "trireme/ops/pooling/pooling.hpp"
#include "trireme/ops/reduce/reduce.hpp"

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
  if (value.is_array()) return {value.at(0).get<std::int64_t>(), value.at(1).get<std::int64_t>()};
  return value.get<std::int64_t>();
}

Conv2dOptions options_of(const nlohmann::json& hyper) {
  return {.stride = extent(hyper.at("stride")),
          .padding = extent(hyper.at("padding")),
          .dilation = extent(hyper.at("dilation")),
          .groups = hyper.at("groups")};
}

}  // namespace

void run_conv2d(OpFixture& fixture) {
  fixture.know_options({"stride", "padding", "dilation", "groups", "bias"});
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
}

void run_conv_transpose2d(OpFixture& fixture) {
  fixture.know_options({"stride", "padding", "output_padding", "dilation", "groups", "bias"});
  const auto plain = options_of(fixture.hyper());
  const ConvTranspose2dOptions options{.stride = plain.stride,
                                       .padding = plain.padding,
                                       .output_padding = extent(fixture.hyper().at("output_padding")),
                                       .dilation = plain.dilation,
                                       .groups = plain.groups};
  const auto x = to_channels_last(fixture.input("x"));
  const auto dy = to_channels_last(fixture.input("gout_out"));
  const auto weight = fixture.input("weight");
  const auto size = conv_transpose2d_extent({x.dim(1), x.dim(2)}, {weight.dim(2), weight.dim(3)}, options);
  Tensor<float> y({x.dim(0), size.height, size.width, weight.dim(1) * options.groups});
  Tensor<float> dx(x.shape()), dweight(weight.shape()), dbias({dy.dim(3)});
  conv_transpose2d(x, weight, fixture.input_or_undefined("bias"), options, y);
  conv_transpose2d_backward_data(dy, weight, options, dx, false);
  conv_transpose2d_backward_weight(x, dy, options, dweight, false);
  sum_rows(dy, dbias, false);
  fixture.result("out", to_channels_first(y));
  fixture.result("grad_x", to_channels_first(dx));
  fixture.result("grad_weight", dweight);
  fixture.result("grad_bias", dbias);
}

void run_max_pool2d(OpFixture& fixture) {
  fixture.know_options({"kernel", "stride", "padding", "dilation", "ceil_mode"});
  const auto& hyper = fixture.hyper();
  const Pool2dOptions options{.kernel = extent(hyper.at("kernel")),
                              .stride = extent(hyper.at("stride")),
                              .padding = extent(hyper.at("padding")),
                              .dilation = extent(hyper.at("dilation")),
                              .ceil_mode = hyper.at("ceil_mode")};
  const auto x = to_channels_last(fixture.input("x"));
  const auto dy = to_channels_last(fixture.input("gout_out"));
  Tensor<float> y(dy.shape()), dx(x.shape());
  PoolArgmax<Cpu> argmax(y.shape());
  max_pool2d(x, options, y, argmax);
  max_pool2d_backward(dy, argmax, options, dx, false);
  fixture.result("out", to_channels_first(y));
  fixture.result("grad_x", to_channels_first(dx));
}

void run_avg_pool2d(OpFixture& fixture) {
  fixture.know_options({"kernel", "stride", "padding", "ceil_mode", "count_include_pad"});
  const auto& hyper = fixture.hyper();
  const AvgPool2dOptions options{.kernel = extent(hyper.at("kernel")),
                                 .stride = extent(hyper.at("stride")),
                                 .padding = extent(hyper.at("padding")),
                                 .ceil_mode = hyper.at("ceil_mode"),
                                 .count_include_pad = hyper.at("count_include_pad")};
  const auto x = to_channels_last(fixture.input("x"));
  const auto dy = to_channels_last(fixture.input("gout_out"));
  Tensor<float> y(dy.shape()), dx(x.shape());
  avg_pool2d(x, options, y);
  avg_pool2d_backward(dy, options, dx, false);
  fixture.result("out", to_channels_first(y));
  fixture.result("grad_x", to_channels_first(dx));
}

void run_adaptive_avg_pool2d(OpFixture& fixture) {
  fixture.know_options({"output_size"});
  const auto output = extent(fixture.hyper().at("output_size"));
  const auto x = to_channels_last(fixture.input("x"));
  const auto dy = to_channels_last(fixture.input("gout_out"));
  Tensor<float> y({x.dim(0), output.height, output.width, x.dim(3)}), dx(x.shape());
  adaptive_avg_pool2d(x, y);
  adaptive_avg_pool2d_backward(dy, dx, false);
  fixture.result("out", to_channels_first(y));
  fixture.result("grad_x", to_channels_first(dx));
}

}  // namespace trireme::ops
