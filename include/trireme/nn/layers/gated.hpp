#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trireme/autograd/composed/gated.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/layers/layers.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

struct PReluOptions {
  std::int64_t channels = 1;  // 1: one slope for all channels
  double slope = 0.25;        // initial value
};

// relu(x) + weight * min(x, 0), as torch.nn.PReLU; x[..., channels], weight [channels] or [1].
template <typename P, typename D = Cpu>
class PRelu : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  PRelu(const Module<P, D>& parent, std::string_view name, const PReluOptions& options = {}) : Module<P, D>(parent, name) {
    require(options.channels > 0, "{}: PReLU needs channels above 0, got {}", this->name(), options.channels);
    weight = this->add_parameter("weight", {options.channels}, Initializer::constant(options.slope));
  }

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return prelu(x, cast<T>(this->shared(weight))); });
  }

  Parameter<T, D, M> weight;
};

enum class Gate : std::uint8_t { glu, swiglu, geglu, reglu };  // sigmoid, silu, GELU, ReLU

struct GatedMlpOptions {
  std::int64_t width = 0;
  std::int64_t hidden = 0;
  Gate gate = Gate::swiglu;
  bool bias = false;
  bool adaptable = true;                               // may get a LoRA adapter
  std::optional<Initializer> weight_initializer = {};  // not given: as nn::Linear; if given, biases are 0
};

// down(gate(gate_proj(x)) * up_proj(x)) (Shazeer 2020, arXiv 2002.05202), with the names of Llama; [..., width] -> the same
// shape. The ranks of a tensor axis divide the hidden features.
template <typename P, typename D = Cpu>
class GatedMlp : public Module<P, D> {
 public:
  using T = typename P::Compute;

  GatedMlp(const Module<P, D>& parent, std::string_view name, const GatedMlpOptions& options)
      : Module<P, D>(parent, name),
        gate_proj(*this, "gate_proj", linear(options, TensorSplit::column)),
        up_proj(*this, "up_proj", linear(options, TensorSplit::column)),
        down_proj(*this, "down_proj", linear(options, TensorSplit::row)),
        gate_(options.gate) {}

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] {
      const Variable<T, D> gate = gate_proj.forward(x);
      return down_proj.forward(gated_activation(activation(), gate, up_proj.forward(x)));
    });
  }

  Linear<P, D> gate_proj;
  Linear<P, D> up_proj;
  Linear<P, D> down_proj;

 private:
  static LinearOptions linear(const GatedMlpOptions& options, TensorSplit split) {
    const bool is_last = split == TensorSplit::row;
    return {.in = is_last ? options.hidden : options.width,
            .out = is_last ? options.width : options.hidden,
            .bias = options.bias,
            .split = split,
            .adaptable = options.adaptable,
            .weight_initializer = options.weight_initializer,
            .bias_initializer = options.weight_initializer ? std::optional(Initializer::constant(0)) : std::nullopt};
  }

  ops::Activation activation() const {
    switch (gate_) {
      case Gate::glu: return ops::Activation::sigmoid;
      case Gate::swiglu: return ops::Activation::silu;
      case Gate::geglu: return ops::Activation::gelu_erf;
      case Gate::reglu: break;
    }
    return ops::Activation::relu;
  }

  Gate gate_;
};

// Stochastic depth, see drop_path(); the random numbers are named after this module. Apply this module to a branch before the
// branch is added to a residual stream. In evaluation, or without a tape, forward() returns x.
template <typename P, typename D = Cpu>
class DropPath : public Module<P, D> {
 public:
  DropPath(const Module<P, D>& parent, std::string_view name, double probability)
      : Module<P, D>(parent, name), probability_(probability) {
    this->require_all_rows("stochastic depth");
  }

  template <typename T>
  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] { return this->training() ? drop_path(x, probability_, this->name()) : x; });
  }

 private:
  double probability_;
};

}  // namespace nn
}  // namespace trireme
