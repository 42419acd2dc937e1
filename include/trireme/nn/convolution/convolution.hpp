#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "trireme/autograd/composed/convolutions.hpp"
#include "trireme/autograd/operations/convolution.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/first_values.hpp"
#include "trireme/nn/base/module.hpp"

// Convolutions of sequences [batch, length, channels], images [batch, height, width, channels] and volumes [batch, depth,
// height, width, channels]. Names, weights and initial values are those of torch.nn.
namespace trireme TRIREME_EXPORT {
namespace nn {

template <typename Extent>
struct ConvolutionOptions {
  std::int64_t in = 0;  // channels
  std::int64_t out = 0;
  Extent kernel = 0;
  Extent stride = 1;
  Extent padding = 0;
  Extent dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Initializer> weight_initializer = {};  // uniform in +-1 / sqrt(fan in) unless given
  std::optional<Initializer> bias_initializer = {};    // likewise
};
using Conv1dOptions = ConvolutionOptions<std::int64_t>;
using Conv2dOptions = ConvolutionOptions<ops::Extent2d>;
using Conv3dOptions = ConvolutionOptions<ops::Extent3d>;

template <typename Extent>
struct TransposedConvolutionOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  Extent kernel = 0;
  Extent stride = 1;
  Extent padding = 0;
  Extent output_padding = 0;
  Extent dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Initializer> weight_initializer = {};
  std::optional<Initializer> bias_initializer = {};
};
using ConvTranspose1dOptions = TransposedConvolutionOptions<std::int64_t>;
using ConvTranspose2dOptions = TransposedConvolutionOptions<ops::Extent2d>;

// The base class of these layers. It holds a layer's parameters and the arguments of its operation.
template <typename P, typename D, typename Arguments>
class Convolution : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;

 protected:
  // weight [out, in / groups, kernel...].
  template <typename Extent>
  Convolution(const Module<P, D>& parent, std::string_view name, const ConvolutionOptions<Extent>& options)
      : Module<P, D>(parent, name),
        arguments_{
            .stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups} {
    add_parameters(options, options.out, options.in);
  }
  // weight [in, out / groups, kernel...].
  template <typename Extent>
  Convolution(const Module<P, D>& parent, std::string_view name, const TransposedConvolutionOptions<Extent>& options)
      : Module<P, D>(parent, name),
        arguments_{.stride = options.stride,
                   .padding = options.padding,
                   .output_padding = options.output_padding,
                   .dilation = options.dilation,
                   .groups = options.groups} {
    add_parameters(options, options.in, options.out);
  }
  ~Convolution() = default;

  const Arguments& arguments() const { return arguments_; }

 private:
  static std::array<std::int64_t, 1> dims_of(std::int64_t kernel) { return {kernel}; }
  static std::array<std::int64_t, 2> dims_of(const ops::Extent2d& kernel) { return {kernel.height, kernel.width}; }
  static std::array<std::int64_t, 3> dims_of(const ops::Extent3d& kernel) {
    return {kernel.depth, kernel.height, kernel.width};
  }

  void add_parameters(const auto& options, std::int64_t rows, std::int64_t columns) {
    this->require_all_rows("a convolution");
    const auto kernel = dims_of(options.kernel);
    const std::int64_t least = std::ranges::min(kernel);
    require(options.in > 0 && options.out > 0 && least > 0,
            "{}: a convolution needs in, out and kernel above 0, got {}, {} and {}", this->name(), options.in, options.out,
            least);
    require(options.groups > 0 && options.in % options.groups == 0 && options.out % options.groups == 0,
            "{}: {} groups do not divide {} and {} channels", this->name(), options.groups, options.in, options.out);
    std::vector<std::int64_t> dims{rows, columns / options.groups};
    dims.insert(dims.end(), kernel.begin(), kernel.end());
    const Shape shape(dims);
    const Initializer standard = uniform_by_fan_in(shape.numel() / rows);
    weight = this->add_parameter("weight", shape, options.weight_initializer.value_or(standard));
    if (options.bias) bias = this->add_parameter("bias", {options.out}, options.bias_initializer.value_or(standard));
  }

  Arguments arguments_;
};

// [batch, length, in] -> [batch, y_length, out]; weight [out, in / groups, kernel].
template <typename P, typename D = Cpu>
class Conv1d : public Convolution<P, D, Conv1dArguments> {
 public:
  using T = typename P::Compute;

  Conv1d(const Module<P, D>& parent, std::string_view name, const Conv1dOptions& options)
      : Convolution<P, D, Conv1dArguments>(parent, name, options) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv1d(x, this->weight.master(), this->bias.master(), this->arguments()); });
  }
};

// The transposed convolution; weight [in, out / groups, kernel].
template <typename P, typename D = Cpu>
class ConvTranspose1d : public Convolution<P, D, ConvTranspose1dArguments> {
 public:
  using T = typename P::Compute;

  ConvTranspose1d(const Module<P, D>& parent, std::string_view name, const ConvTranspose1dOptions& options)
      : Convolution<P, D, ConvTranspose1dArguments>(parent, name, options) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv_transpose1d(x, this->weight.master(), this->bias.master(), this->arguments()); });
  }
};

// [batch, height, width, in] -> [batch, y_height, y_width, out]; weight [out, in / groups, kernel_height, kernel_width].
template <typename P, typename D = Cpu>
class Conv2d : public Convolution<P, D, ops::Conv2dOptions> {
 public:
  using T = typename P::Compute;

  Conv2d(const Module<P, D>& parent, std::string_view name, const Conv2dOptions& options)
      : Convolution<P, D, ops::Conv2dOptions>(parent, name, options) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv2d(x, this->weight.variable(), this->bias.master(), this->arguments()); });
  }
};

// The transposed convolution; weight [in, out / groups, kernel_height, kernel_width].
template <typename P, typename D = Cpu>
class ConvTranspose2d : public Convolution<P, D, ops::ConvTranspose2dOptions> {
 public:
  using T = typename P::Compute;

  ConvTranspose2d(const Module<P, D>& parent, std::string_view name, const ConvTranspose2dOptions& options)
      : Convolution<P, D, ops::ConvTranspose2dOptions>(parent, name, options) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv_transpose2d(x, this->weight.variable(), this->bias.master(), this->arguments()); });
  }
};

// [batch, depth, height, width, in] -> [batch, y_depth, y_height, y_width, out]; weight [out, in / groups, kernel_depth,
// kernel_height, kernel_width].
template <typename P, typename D = Cpu>
class Conv3d : public Convolution<P, D, Conv3dArguments> {
 public:
  using T = typename P::Compute;

  Conv3d(const Module<P, D>& parent, std::string_view name, const Conv3dOptions& options)
      : Convolution<P, D, Conv3dArguments>(parent, name, options) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv3d(x, this->weight.master(), this->bias.master(), this->arguments()); });
  }
};

}  // namespace nn
}  // namespace trireme
