#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "trireme/autograd/composed/convolutions.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/module.hpp"

// Convolutions of sequences [batch, length, channels] and volumes [batch, depth, height, width, channels]. Names, weights and
// first values are those of torch.nn.
namespace trireme TRIREME_EXPORT {
namespace nn {

struct Conv1dOptions {
  std::int64_t in = 0;  // channels
  std::int64_t out = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Initializer> weight_initializer = {};  // uniform in +-1 / sqrt(fan in) unless given
  std::optional<Initializer> bias_initializer = {};    // likewise
};

struct ConvTranspose1dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Initializer> weight_initializer = {};
  std::optional<Initializer> bias_initializer = {};
};

struct Conv3dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  ops::Extent3d kernel = 0;
  ops::Extent3d stride = 1;
  ops::Extent3d padding = 0;
  ops::Extent3d dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Initializer> weight_initializer = {};
  std::optional<Initializer> bias_initializer = {};
};

// What these layers hold.
template <typename P, typename D = Cpu>
class KernelParameters : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;

 protected:
  // of_weight: [rows, columns / groups, kernel...]; the bias has options.out elements.
  template <typename Options>
  KernelParameters(const Module<P, D>& parent, std::string_view name, const Options& options, const Shape& of_weight)
      : Module<P, D>(parent, name) {
    this->require_all_rows("a convolution");
    require(options.in > 0 && options.out > 0 && of_weight.numel() > 0,
            "{}: a convolution needs in, out and kernel above 0, got {}, {} and a weight {}", this->name(), options.in,
            options.out, of_weight);
    const std::int64_t inputs = of_weight.numel() / of_weight[0];
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    const auto standard = Initializer::uniform(-bound, bound);
    weight = this->add_parameter("weight", of_weight, options.weight_initializer.value_or(standard));
    if (options.bias) bias = this->add_parameter("bias", {options.out}, options.bias_initializer.value_or(standard));
  }
  ~KernelParameters() = default;

  // Channels of a group.
  static std::int64_t of_group(std::string_view name, const auto& options, std::int64_t channels) {
    require(options.groups > 0 && options.in % options.groups == 0 && options.out % options.groups == 0,
            "{}: {} groups do not divide {} and {} channels", name, options.groups, options.in, options.out);
    return channels / options.groups;
  }
};

// [batch, length, in] -> [batch, y length, out]; weight [out, in / groups, kernel].
template <typename P, typename D = Cpu>
class Conv1d : public KernelParameters<P, D> {
 public:
  using T = typename P::Compute;

  Conv1d(const Module<P, D>& parent, std::string_view name, const Conv1dOptions& options)
      : KernelParameters<P, D>(parent, name, options,
                               {options.out, Conv1d::of_group(name, options, options.in), options.kernel}),
        options_{.stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups} {
  }

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv1d(x, this->weight.master(), this->bias.master(), options_); });
  }

 private:
  Conv1dArguments options_;
};

// The same back: weight [in, out / groups, kernel].
template <typename P, typename D = Cpu>
class ConvTranspose1d : public KernelParameters<P, D> {
 public:
  using T = typename P::Compute;

  ConvTranspose1d(const Module<P, D>& parent, std::string_view name, const ConvTranspose1dOptions& options)
      : KernelParameters<P, D>(parent, name, options,
                               {options.in, ConvTranspose1d::of_group(name, options, options.out), options.kernel}),
        options_{.stride = options.stride,
                 .padding = options.padding,
                 .output_padding = options.output_padding,
                 .dilation = options.dilation,
                 .groups = options.groups} {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv_transpose1d(x, this->weight.master(), this->bias.master(), options_); });
  }

 private:
  ConvTranspose1dArguments options_;
};

// [batch, depth, height, width, in] -> [batch, y depth, y height, y width, out]; weight [out, in / groups, kernel depth, kernel
// height, kernel width].
template <typename P, typename D = Cpu>
class Conv3d : public KernelParameters<P, D> {
 public:
  using T = typename P::Compute;

  Conv3d(const Module<P, D>& parent, std::string_view name, const Conv3dOptions& options)
      : KernelParameters<P, D>(parent, name, options,
                               {options.out, Conv3d::of_group(name, options, options.in), options.kernel.depth,
                                options.kernel.height, options.kernel.width}),
        options_{.stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups} {
  }

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv3d(x, this->weight.master(), this->bias.master(), options_); });
  }

 private:
  Conv3dArguments options_;
};

}  // namespace nn
}  // namespace trireme
