#pragma once

#include <cmath>
#include <optional>

#include "trireme/autograd/convolution.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/module.hpp"

// Layers of images [batch, height, width, channels]. Names, weights and first values are those of torch.nn.
namespace trireme TRIREME_EXPORT {
namespace nn {

struct Conv2dOptions {
  std::int64_t in = 0;  // channels
  std::int64_t out = 0;
  ops::Extent2d kernel = 0;
  ops::Extent2d stride = 1;
  ops::Extent2d padding = 0;
  ops::Extent2d dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Initializer> weight_initializer = {};  // uniform in +-1 / sqrt(fan in) unless given
  std::optional<Initializer> bias_initializer = {};    // likewise
};

struct ConvTranspose2dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  ops::Extent2d kernel = 0;
  ops::Extent2d stride = 1;
  ops::Extent2d padding = 0;
  ops::Extent2d output_padding = 0;
  ops::Extent2d dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Initializer> weight_initializer = {};
  std::optional<Initializer> bias_initializer = {};
};

// What both layers hold.
template <typename P, typename D = Cpu>
class ConvolutionParameters : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;

 protected:
  // weight [rows, columns / groups, kernel]; the bias has options.out elements.
  template <typename Options>
  ConvolutionParameters(const Module<P, D>& parent, std::string_view name, const Options& options, std::int64_t rows,
                        std::int64_t columns)
      : Module<P, D>(parent, name) {
    this->require_all_rows("a convolution");
    require(options.in > 0 && options.out > 0 && options.kernel.height > 0 && options.kernel.width > 0,
            "{}: a convolution needs in, out and kernel above 0, got {}, {} and {} x {}", this->name(), options.in, options.out,
            options.kernel.height, options.kernel.width);
    require(options.groups > 0 && options.in % options.groups == 0 && options.out % options.groups == 0,
            "{}: {} groups do not divide {} and {} channels", this->name(), options.groups, options.in, options.out);
    const Shape shape{rows, columns / options.groups, options.kernel.height, options.kernel.width};
    const std::int64_t inputs = shape.numel() / rows;
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    const auto standard = Initializer::uniform(-bound, bound);
    weight = this->add_parameter("weight", shape, options.weight_initializer.value_or(standard));
    if (options.bias) bias = this->add_parameter("bias", {options.out}, options.bias_initializer.value_or(standard));
  }
  ~ConvolutionParameters() = default;
};

// [batch, height, width, in] -> [batch, y height, y width, out]; weight [out, in / groups, kernel height, kernel width].
template <typename P, typename D = Cpu>
class Conv2d : public ConvolutionParameters<P, D> {
 public:
  using T = typename P::Compute;

  Conv2d(const Module<P, D>& parent, std::string_view name, const Conv2dOptions& options)
      : ConvolutionParameters<P, D>(parent, name, options, options.out, options.in),
        options_{.stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups} {
  }

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv2d(x, this->weight.variable(), this->bias.master(), options_); });
  }

 private:
  ops::Conv2dOptions options_;
};

// The same back: weight [in, out / groups, kernel height, kernel width].
template <typename P, typename D = Cpu>
class ConvTranspose2d : public ConvolutionParameters<P, D> {
 public:
  using T = typename P::Compute;

  ConvTranspose2d(const Module<P, D>& parent, std::string_view name, const ConvTranspose2dOptions& options)
      : ConvolutionParameters<P, D>(parent, name, options, options.in, options.out),
        options_{.stride = options.stride,
                 .padding = options.padding,
                 .output_padding = options.output_padding,
                 .dilation = options.dilation,
                 .groups = options.groups} {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv_transpose2d(x, this->weight.variable(), this->bias.master(), options_); });
  }

 private:
  ops::ConvTranspose2dOptions options_;
};

}  // namespace nn
}  // namespace trireme
