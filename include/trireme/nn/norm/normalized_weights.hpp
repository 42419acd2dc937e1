#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "trireme/autograd/composed/computed_weight.hpp"
#include "trireme/autograd/composed/convolutions.hpp"
#include "trireme/autograd/operations/convolution.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/first_values.hpp"
#include "trireme/nn/base/module.hpp"

// Layers whose weights are computed from parameters by weight_norm() or spectral_norm(). Every rank of a tensor axis computes
// the whole layer.
namespace trireme TRIREME_EXPORT {
namespace nn {

// The weight is weight_g * weight_v / |weight_v| for each output (Salimans, Kingma 2016, arXiv 1602.07868), with the names of
// torch.nn.utils.weight_norm. weight_g starts as 1 / sqrt(3), which is about the initial |weight_v|.
template <typename P, typename D = Cpu>
class WeightNormParameters : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  Parameter<T, D, M> weight_g;  // [out, 1, ...]
  Parameter<T, D, M> weight_v;  // [out, ...]
  Parameter<T, D, M> bias;

 protected:
  WeightNormParameters(const Module<P, D>& parent, std::string_view name, const Shape& of_weight, const Shape& of_lengths,
                       bool has_bias)
      : Module<P, D>(parent, name) {
    this->require_all_rows("a layer with weight norm");
    require(of_weight.numel() > 0, "{}: a layer needs in, out and kernel above 0, its weight has shape {}", this->name(),
            of_weight);
    const Initializer standard = uniform_by_fan_in(of_weight.numel() / of_weight[0]);
    weight_g = this->add_parameter("weight_g", of_lengths, Initializer::constant(1 / std::sqrt(3.0)));
    weight_v = this->add_parameter("weight_v", of_weight, standard);
    if (has_bias) bias = this->add_parameter("bias", {of_weight[0]}, standard);
  }
  ~WeightNormParameters() = default;

  Variable<M, D> weight() const { return weight_norm(weight_v.master(), weight_g.master()); }
};

struct WeightNormLinearOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = true;
};

// [..., in] -> [..., out].
template <typename P, typename D = Cpu>
class WeightNormLinear : public WeightNormParameters<P, D> {
 public:
  using T = typename P::Compute;

  WeightNormLinear(const Module<P, D>& parent, std::string_view name, const WeightNormLinearOptions& options)
      : WeightNormParameters<P, D>(parent, name, {options.out, options.in}, {options.out, 1}, options.bias) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return linear(x, computed_weight<T>(this->weight()), this->bias.master()); });
  }
};

struct WeightNormConv1dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = 0;
  Conv1dArguments arguments = {};
  bool bias = true;
};

// [batch, length, in] -> [batch, y_length, out].
template <typename P, typename D = Cpu>
class WeightNormConv1d : public WeightNormParameters<P, D> {
 public:
  using T = typename P::Compute;

  WeightNormConv1d(const Module<P, D>& parent, std::string_view name, const WeightNormConv1dOptions& options)
      : WeightNormParameters<P, D>(
            parent, name, {options.out, options.in / std::max<std::int64_t>(options.arguments.groups, 1), options.kernel},
            {options.out, 1, 1}, options.bias),
        arguments_(options.arguments) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv1d(x, this->weight(), this->bias.master(), arguments_); });
  }

 private:
  Conv1dArguments arguments_;
};

// Divides the weight by the largest singular value of the matrix [out, ...] (Miyato et al. 2018, arXiv 1802.05957). One power
// iteration from weight_u estimates this value. Each forward pass in training keeps the new weight_u, so the estimate
// improves; evaluation also iterates, but does not keep the result. weight_u starts as ones; torch.nn.utils.spectral_norm
// draws it at random.
template <typename P, typename D = Cpu>
class SpectralNormParameters : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;
  Buffer<M, D> weight_u;  // [out]

 protected:
  SpectralNormParameters(const Module<P, D>& parent, std::string_view name, const Shape& of_weight, bool has_bias)
      : Module<P, D>(parent, name) {
    this->require_all_rows("a layer with spectral norm");
    require(of_weight.numel() > 0, "{}: a layer needs in, out and kernel above 0, its weight has shape {}", this->name(),
            of_weight);
    const Initializer standard = uniform_by_fan_in(of_weight.numel() / of_weight[0]);
    weight = this->add_parameter("weight", of_weight, standard);
    if (has_bias) bias = this->add_parameter("bias", {of_weight[0]}, standard);
    weight_u = this->add_buffer("weight_u", {of_weight[0]}, 1);
  }
  ~SpectralNormParameters() = default;

  Variable<T, D, M> normalized() const {
    const Tensor<M, D> kept = weight_u.value();
    const auto vectors = Tape::once([&]() -> SingularVectors<M, D> {
      SingularVectors<M, D> found = power_iteration(weight.value(), kept);
      if (this->training() && Tape::current() != nullptr) {
        device::copy_bytes(D{}, kept.data(), D{}, found.left.data(), kept.span().size_bytes());
      }
      return found;
    });
    return computed_weight<T>(spectral_norm(weight.master(), vectors));
  }
};

struct SpectralNormLinearOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = true;
};

// [..., in] -> [..., out].
template <typename P, typename D = Cpu>
class SpectralNormLinear : public SpectralNormParameters<P, D> {
 public:
  using T = typename P::Compute;

  SpectralNormLinear(const Module<P, D>& parent, std::string_view name, const SpectralNormLinearOptions& options)
      : SpectralNormParameters<P, D>(parent, name, {options.out, options.in}, options.bias) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return linear(x, this->normalized(), this->bias.master()); });
  }
};

struct SpectralNormConv2dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  ops::Extent2d kernel = 0;
  ops::Conv2dOptions arguments = {};
  bool bias = true;
};

// [batch, height, width, in] -> [batch, y_height, y_width, out].
template <typename P, typename D = Cpu>
class SpectralNormConv2d : public SpectralNormParameters<P, D> {
 public:
  using T = typename P::Compute;

  SpectralNormConv2d(const Module<P, D>& parent, std::string_view name, const SpectralNormConv2dOptions& options)
      : SpectralNormParameters<P, D>(parent, name,
                                     {options.out, options.in / std::max<std::int64_t>(options.arguments.groups, 1),
                                      options.kernel.height, options.kernel.width},
                                     options.bias),
        arguments_(options.arguments) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return conv2d(x, this->normalized(), this->bias.master(), arguments_); });
  }

 private:
  ops::Conv2dOptions arguments_;
};

}  // namespace nn
}  // namespace trireme
