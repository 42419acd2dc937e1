#include <algorithm>
#include <cmath>
#include <utility>

#include "onnx/builder.hpp"

// Images are [batch, height, width, channels] here, and [batch, channels, height, width] for ONNX's convolutions and pooling.
namespace trireme::onnx::detail {
namespace {

std::string channels_first(Builder& b) { return b.transpose(b.operand(0), {0, 3, 1, 2}); }
void set_channels_last(Builder& b, const std::string& y) { b.set_result(b.transpose(y, {0, 2, 3, 1})); }

Numbers twice(const Numbers& padding) { return {padding[0], padding[1], padding[0], padding[1]}; }

std::vector<Attribute> settings_of_convolution(const Builder& b) {
  return {{"strides", b.numbers("stride")},
          {"pads", twice(b.numbers("padding"))},
          {"dilations", b.numbers("dilation")},
          {"group", b.whole("groups")}};
}

void convolve(Builder& b, std::string_view op, std::vector<Attribute> settings) {
  std::vector<std::string> operands{channels_first(b), b.operand(1)};
  if (b.has(2)) operands.push_back(b.operand(2));
  set_channels_last(b, b.node(op, operands, std::move(settings)));
}

void conv2d(Builder& b) { convolve(b, "Conv", settings_of_convolution(b)); }

void conv_transpose2d(Builder& b) {
  std::vector<Attribute> settings = settings_of_convolution(b);
  settings.push_back({"output_padding", b.numbers("output_padding")});
  convolve(b, "ConvTranspose", std::move(settings));
}

struct Pooling {
  std::vector<Attribute> attributes;
  bool overlaps_end = false;  // a window reaches beyond the padding
  bool is_padded = false;
};

// Writes ceil_mode as padding at the end, as much as the last windows need, since ONNX's own ceil_mode also counts windows that
// start in that padding.
Pooling pooling_of(Builder& b, const Numbers& dilation) {
  const Numbers kernel = b.numbers("kernel"), padding = b.numbers("padding");
  Numbers stride = b.numbers("stride");
  for (std::size_t i = 0; i < stride.size(); ++i) stride[i] = stride[i] == 0 ? kernel[i] : stride[i];
  Numbers pads = twice(padding);
  Pooling pooling{.attributes = {{"kernel_shape", kernel}, {"strides", stride}}};
  for (std::size_t i = 0; i < 2; ++i) {
    pooling.is_padded = pooling.is_padded || padding[i] > 0;
    if (b.whole("ceil_mode") == 0) continue;
    const Dim from = b.dims(0)[1 + i], to = b.result_dims()[1 + i];
    if (!from.is_constant()) b.refuse("rounds up the pixels of images of dynamic extent");
    const std::int64_t reached = (to.first - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 - padding[i];
    pads[2 + i] = std::max<std::int64_t>(reached - from.first, 0);
    pooling.overlaps_end = pooling.overlaps_end || pads[2 + i] > padding[i];
  }
  pooling.attributes.push_back({"pads", pads});
  return pooling;
}

void max_pool2d(Builder& b) {
  const Numbers dilation = b.numbers("dilation");
  Pooling pooling = pooling_of(b, dilation);
  pooling.attributes.push_back({"dilations", dilation});
  set_channels_last(b, b.node("MaxPool", {channels_first(b)}, std::move(pooling.attributes)));
}

void avg_pool2d(Builder& b) {
  Pooling pooling = pooling_of(b, {1, 1});
  const bool counts_padding = b.whole("count_include_pad") != 0 && pooling.is_padded;
  if (counts_padding && pooling.overlaps_end) b.refuse("counts padding, but not what windows have beyond it");
  pooling.attributes.push_back({"count_include_pad", std::int64_t{counts_padding}});
  set_channels_last(b, b.node("AveragePool", {channels_first(b)}, std::move(pooling.attributes)));
}

// Pools to one pixel, or to a number of pixels that divides the image's.
template <bool takes_max>
void adaptive_pool2d(Builder& b) {
  const Numbers output = b.numbers("output");
  const Dims dims = b.dims(0);
  if (output == Numbers{1, 1}) {
    return set_channels_last(b, b.node(takes_max ? "GlobalMaxPool" : "GlobalAveragePool", {channels_first(b)}));
  }
  const bool divides =
      dims[1].is_constant() && dims[2].is_constant() && dims[1].first % output[0] == 0 && dims[2].first % output[1] == 0;
  if (!divides) b.refuse("pools to a number of pixels that does not divide those of the image");
  const Numbers kernel{dims[1].first / output[0], dims[2].first / output[1]};
  set_channels_last(
      b, b.node(takes_max ? "MaxPool" : "AveragePool", {channels_first(b)}, {{"kernel_shape", kernel}, {"strides", kernel}}));
}

// x: [batch, channels, height, width]. A scale is the size of a pixel of the result in pixels of x.
void interpolate(Builder& b) {
  const Numbers size = b.numbers("size");
  const Dims dims = b.dims(0);
  const bool aligns = b.whole("align_corners") != 0, is_nearest = b.text("mode") == "nearest";
  for (std::size_t i = 0; i < 2; ++i) {
    const Dim pixels = dims[2 + i];
    if (!pixels.is_constant()) b.refuse("resizes images of dynamic extent");
    if (aligns) continue;
    const bool is_ratio = size[i] % pixels.first == 0 || pixels.first % size[i] == 0;
    if (!is_ratio) b.refuse("resizes images to a number of pixels that is neither a multiple nor a divisor of theirs");
    const double ratio = static_cast<double>(pixels.first) / static_cast<double>(size[i]);
    const double scale = b.real(i == 0 ? "height_scale" : "width_scale");
    if (std::abs(scale - ratio) > 1e-9 * ratio) b.refuse("resizes images by a scale that gives no whole number of pixels");
  }
  const std::string place = aligns ? "align_corners" : is_nearest ? "asymmetric" : "half_pixel";
  b.set_result(b.node("Resize", {b.operand(0), std::string(), std::string(), b.extents(b.result_dims())},
                      {{"mode", std::string(is_nearest ? "nearest" : "linear")},
                       {"coordinate_transformation_mode", place},
                       {"nearest_mode", std::string("floor")}}));
}

}  // namespace

void add_images(Emitters& to) {
  to["conv2d"] = conv2d;
  to["conv_transpose2d"] = conv_transpose2d;
  to["max_pool2d"] = max_pool2d;
  to["avg_pool2d"] = avg_pool2d;
  to["adaptive_max_pool2d"] = adaptive_pool2d<true>;
  to["adaptive_avg_pool2d"] = adaptive_pool2d<false>;
  to["interpolate"] = interpolate;
}

}  // namespace trireme::onnx::detail
