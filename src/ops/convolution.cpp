#include "trireme/ops/convolution.hpp"

#include <algorithm>

#include "ops/check.hpp"
#include "ops/convolution_plan.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/elementwise.hpp"
#include "ops/matmul_plan.hpp"
#include "ops/parallel.hpp"
#include "trireme/ops/cast.hpp"
#include "trireme/ops/elementwise.hpp"

namespace trireme::ops {
namespace {

ConvolutionShape convolution_shape(std::string_view op, const Shape& x, const Shape& weight, const Shape& y,
                                   const Conv2dOptions& options) {
  require(
      x.size() == 4 && y.size() == 4 && weight.size() == 4,
      "{}: images {} and {} need [batch, height, width, channels] and the weight {} needs [out, in / groups, height, width]",
      op, x, y, weight);
  require(x[3] > 0 && weight.numel() > 0, "{}: images {} and the weight {} need channels and a kernel", op, x, weight);
  require(options.groups > 0 && x[3] == weight[1] * options.groups && weight[0] % options.groups == 0,
          "{}: a weight of shape {} in {} groups does not fit images {} with {} channels", op, weight, options.groups, x, x[3]);
  const Extent2d kernel{weight[2], weight[3]};
  const Extent2d extent = conv2d_extent({x[1], x[2]}, kernel, options);
  require_shape(op, "the result", y, {x[0], extent.height, extent.width, weight[0]});
  return {.batch = x[0],
          .in = x[3],
          .out = weight[0],
          .groups = options.groups,
          .x = {x[1], x[2]},
          .y = extent,
          .kernel = kernel,
          .stride = options.stride,
          .padding = options.padding,
          .dilation = options.dilation};
}

// Of the convolution from y to x, whose backward pass the transposed one from x to y is.
ConvolutionShape transposed_shape(std::string_view op, const Shape& x, const Shape& weight, const Shape& y,
                                  const ConvTranspose2dOptions& options) {
  require(
      x.size() == 4 && y.size() == 4 && weight.size() == 4,
      "{}: images {} and {} need [batch, height, width, channels] and the weight {} needs [in, out / groups, height, width]",
      op, x, y, weight);
  require(x[3] > 0 && weight.numel() > 0, "{}: images {} and the weight {} need channels and a kernel", op, x, weight);
  require(options.groups > 0 && x[3] == weight[0] && weight[0] % options.groups == 0,
          "{}: a weight of shape {} in {} groups is for {} channels and does not fit images {} with {}", op, weight,
          options.groups, weight[0], x, x[3]);
  const Extent2d extent = conv_transpose2d_extent({x[1], x[2]}, {weight[2], weight[3]}, options);
  require_shape(op, "the result", y, {x[0], extent.height, extent.width, weight[1] * options.groups});
  return convolution_shape(
      op, y, weight, x,
      {.stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups});
}

// Runs write(tensor), which overwrites, so that the result is added to `sum` where that is asked for.
template <typename T, typename Write>
void write_or_add(Tensor<T, Cpu>& sum, bool accumulate, const Write& write) {
  if (!accumulate) return write(sum);
  Tensor<T, Cpu> addend(sum.shape());
  write(addend);
  add(sum, addend, sum);
}

// Whether oneDNN takes the operands as they are; if not, they are converted to float.
template <typename T>
bool taken_as_is() {
  return !is_half<T> || has_matmul(dtype_of<T>);
}

template <typename T>
void forward(ConvolutionShape shape, const Tensor<T, Cpu>& x, const Tensor<T, Cpu>& weight, const Accumulate<T>* bias,
             Tensor<T, Cpu>& y) {
  if constexpr (is_half<T>) {
    if (!taken_as_is<T>()) {
      Tensor<float, Cpu> floats(y.shape());
      run_convolution(shape, as_floats(x).data(), as_floats(weight).data(), bias, floats.data());
      return cast(floats, y);
    }
  }
  shape.operands = dtype_of<T>;
  run_convolution(shape, x.data(), weight.data(), bias, y.data());
}

template <typename T>
void backward_data(ConvolutionShape shape, const Tensor<T, Cpu>& dy, const Tensor<T, Cpu>& weight, Tensor<T, Cpu>& dx) {
  if constexpr (is_half<T>) {
    if (!taken_as_is<T>()) {
      Tensor<float, Cpu> floats(dx.shape());
      run_convolution_data(shape, as_floats(dy).data(), as_floats(weight).data(), floats.data());
      return cast(floats, dx);
    }
  }
  shape.operands = dtype_of<T>;
  run_convolution_data(shape, dy.data(), weight.data(), dx.data());
}

template <typename T>
void backward_weight(ConvolutionShape shape, const Tensor<T, Cpu>& x, const Tensor<T, Cpu>& dy, Accumulate<T>* dweight) {
  if constexpr (is_half<T>) {
    if (!taken_as_is<T>()) return run_convolution_weight(shape, as_floats(x).data(), as_floats(dy).data(), dweight);
  }
  shape.operands = dtype_of<T>;
  run_convolution_weight(shape, x.data(), dy.data(), dweight);
}

template <typename T>
void backward_weight(const ConvolutionShape& shape, const Tensor<T, Cpu>& x, const Tensor<T, Cpu>& dy,
                     Tensor<Accumulate<T>, Cpu>& dweight, bool accumulate) {
  if (shape.batch == 0) {
    if (!accumulate) std::fill_n(dweight.data(), dweight.numel(), Accumulate<T>{0});
    return;
  }
  write_or_add(dweight, accumulate, [&](auto& to) { backward_weight(shape, x, dy, to.data()); });
}

// images[..., channels] += bias[channels]. The bias is added in blocks of several pixels: few channels are a short loop.
template <typename T, typename A = Accumulate<T>>
void add_bias(Tensor<T, Cpu>& images, const Tensor<A, Cpu>& bias) {
  const std::int64_t channels = bias.numel();
  const std::int64_t pixels = 1 + (piece_elements - 1) / channels;
  Tensor<A, Cpu> block({pixels, channels});
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) std::copy_n(bias.data(), channels, block.data() + pixel * channels);
  const auto& kernels = elementwise_kernels().of<A>();
  parallel_ranges(images.numel(), block.numel(), least_elements, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += block.numel()) {
      for_pieces<T>(begin, std::min(begin + block.numel(), end), [&](std::int64_t first, std::int64_t count) {
        Output<T> part(images.data() + first, count, true);
        kernels.add(part.data(), block.data() + (first - begin), part.data(), count);
      });
    }
  });
}

}  // namespace

Extent2d conv2d_extent(const Extent2d& input, const Extent2d& kernel, const Conv2dOptions& options) {
  const auto along = [](std::int64_t size, std::int64_t taps, std::int64_t stride, std::int64_t padding,
                        std::int64_t dilation) {
    require(stride > 0 && dilation > 0 && padding >= 0, "conv2d: stride {}, dilation {} and padding {} need to be >= 1, 1, 0",
            stride, dilation, padding);
    const std::int64_t room = size + 2 * padding - dilation * (taps - 1) - 1;
    require(room >= 0, "conv2d: a kernel of {} with dilation {} does not fit {} pixels with padding {}", taps, dilation, size,
            padding);
    return room / stride + 1;
  };
  return {
      along(input.height, kernel.height, options.stride.height, options.padding.height, options.dilation.height),
      along(input.width, kernel.width, options.stride.width, options.padding.width, options.dilation.width),
  };
}

template <typename T, typename D>
void conv2d(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
            const Conv2dOptions& options, Tensor<T, D>& y) {
  auto shape = convolution_shape("conv2d", x.shape(), weight.shape(), y.shape(), options);
  shape.bias = bias.defined();
  if (shape.bias) require_count("conv2d", "bias", bias.shape(), shape.out);
  if (shape.batch > 0) forward(shape, x, weight, bias.data(), y);
}

template <typename T, typename D>
void conv2d_backward_data(const Tensor<T, D>& dy, const Tensor<T, D>& weight, const Conv2dOptions& options, Tensor<T, D>& dx,
                          bool accumulate) {
  const auto shape = convolution_shape("conv2d_backward_data", dx.shape(), weight.shape(), dy.shape(), options);
  if (shape.batch == 0) return;
  write_or_add(dx, accumulate, [&](Tensor<T, D>& to) { backward_data(shape, dy, weight, to); });
}

template <typename T, typename D>
void conv2d_backward_weight(const Tensor<T, D>& x, const Tensor<T, D>& dy, const Conv2dOptions& options,
                            Tensor<Accumulate<T>, D>& dweight, bool accumulate) {
  const auto shape = convolution_shape("conv2d_backward_weight", x.shape(), dweight.shape(), dy.shape(), options);
  backward_weight(shape, x, dy, dweight, accumulate);
}

Extent2d conv_transpose2d_extent(const Extent2d& input, const Extent2d& kernel, const ConvTranspose2dOptions& options) {
  const auto along = [](std::int64_t size, std::int64_t taps, std::int64_t stride, std::int64_t padding, std::int64_t extra,
                        std::int64_t dilation) {
    require(stride > 0 && dilation > 0 && padding >= 0,
            "conv_transpose2d: stride {}, dilation {} and padding {} need to be >= 1, 1, 0", stride, dilation, padding);
    require(extra >= 0 && extra < stride, "conv_transpose2d: an output padding of {} needs to be below the stride of {}", extra,
            stride);
    const std::int64_t extent = (size - 1) * stride - 2 * padding + dilation * (taps - 1) + extra + 1;
    require(size > 0 && extent > 0, "conv_transpose2d: {} pixels, a kernel of {} with dilation {} and padding {} leave nothing",
            size, taps, dilation, padding);
    return extent;
  };
  return {
      along(input.height, kernel.height, options.stride.height, options.padding.height, options.output_padding.height,
            options.dilation.height),
      along(input.width, kernel.width, options.stride.width, options.padding.width, options.output_padding.width,
            options.dilation.width),
  };
}

template <typename T, typename D>
void conv_transpose2d(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
                      const ConvTranspose2dOptions& options, Tensor<T, D>& y) {
  const auto shape = transposed_shape("conv_transpose2d", x.shape(), weight.shape(), y.shape(), options);
  if (bias.defined()) require_count("conv_transpose2d", "bias", bias.shape(), shape.in);
  if (shape.batch == 0) return;
  backward_data(shape, x, weight, y);
  if (bias.defined()) add_bias(y, bias);
}

template <typename T, typename D>
void conv_transpose2d_backward_data(const Tensor<T, D>& dy, const Tensor<T, D>& weight, const ConvTranspose2dOptions& options,
                                    Tensor<T, D>& dx, bool accumulate) {
  const auto shape = transposed_shape("conv_transpose2d_backward_data", dx.shape(), weight.shape(), dy.shape(), options);
  if (shape.batch == 0) return;
  write_or_add(dx, accumulate, [&](Tensor<T, D>& to) { forward<T>(shape, dy, weight, nullptr, to); });
}

template <typename T, typename D>
void conv_transpose2d_backward_weight(const Tensor<T, D>& x, const Tensor<T, D>& dy, const ConvTranspose2dOptions& options,
                                      Tensor<Accumulate<T>, D>& dweight, bool accumulate) {
  const auto shape = transposed_shape("conv_transpose2d_backward_weight", x.shape(), dweight.shape(), dy.shape(), options);
  backward_weight(shape, dy, x, dweight, accumulate);
}

#define TRIREME_INSTANTIATE(T, A)                                                                                             \
  template void conv2d(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, const Tensor<A, Cpu>&, const Conv2dOptions&,             \
                       Tensor<T, Cpu>&);                                                                                      \
  template void conv2d_backward_data(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, const Conv2dOptions&, Tensor<T, Cpu>&,     \
                                     bool);                                                                                   \
  template void conv2d_backward_weight(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, const Conv2dOptions&, Tensor<A, Cpu>&,   \
                                       bool);                                                                                 \
  template void conv_transpose2d(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, const Tensor<A, Cpu>&,                         \
                                 const ConvTranspose2dOptions&, Tensor<T, Cpu>&);                                             \
  template void conv_transpose2d_backward_data(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, const ConvTranspose2dOptions&,   \
                                               Tensor<T, Cpu>&, bool);                                                        \
  template void conv_transpose2d_backward_weight(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, const ConvTranspose2dOptions&, \
                                                 Tensor<A, Cpu>&, bool)
TRIREME_INSTANTIATE(float, float);
TRIREME_INSTANTIATE(double, double);
TRIREME_INSTANTIATE(bfloat16, float);
TRIREME_INSTANTIATE(float16, float);
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
