#pragma once

#include <cmath>
#include <optional>
#include <utility>

#include "trireme/autograd/functions.hpp"
#include "trireme/nn/module.hpp"

namespace trireme::nn {

struct LinearOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = true;
  std::optional<Initializer> weight_initializer = {};  // uniform in +-1 / sqrt(in) unless given, as torch.nn.Linear
  std::optional<Initializer> bias_initializer = {};    // likewise
};

// y = x weight^T + bias; weight [out, in], bias [out].
template <typename P, typename D = Cpu>
class Linear : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  Linear(const Module<P, D>& parent, std::string_view name, const LinearOptions& options) : Module<P, D>(parent, name) {
    require(options.in > 0 && options.out > 0, "{}: a linear layer needs in and out above 0, got {} and {}", this->name(),
            options.in, options.out);
    const double bound = 1 / std::sqrt(static_cast<double>(options.in));
    const auto standard = Initializer::uniform(-bound, bound);
    weight = this->add_parameter("weight", {options.out, options.in}, options.weight_initializer.value_or(standard));
    if (options.bias) bias = this->add_parameter("bias", {options.out}, options.bias_initializer.value_or(standard));
  }

  Variable<T, D> forward(const Variable<T, D>& x) const { return linear(x, weight.variable(), bias.master()); }

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;
};

struct LayerNormOptions {
  std::int64_t width = 0;
  double epsilon = 1e-5;
};

// Over the last dim; weight and bias [width]. In mixed precision it normalises float and gives what a matrix product reads.
template <typename P, typename D = Cpu>
class LayerNorm : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  LayerNorm(const Module<P, D>& parent, std::string_view name, const LayerNormOptions& options)
      : Module<P, D>(parent, name), epsilon_(options.epsilon) {
    weight = this->add_parameter("weight", {options.width}, Initializer::constant(1));
    bias = this->add_parameter("bias", {options.width}, Initializer::constant(0));
  }

  Variable<T, D> forward(const Variable<M, D>& x) const {
    return layer_norm<T, D>(x, weight.master(), bias.master(), epsilon_);
  }

  // {x + residual, its norm} in one pass over memory.
  std::pair<Variable<M, D>, Variable<T, D>> add_and_normalize(const Variable<M, D>& x, const Variable<T, D>& residual) const {
    return residual_layer_norm(x, residual, weight.master(), bias.master(), epsilon_);
  }

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;

 private:
  double epsilon_;
};

struct RmsNormOptions {
  std::int64_t width = 0;
  double epsilon = 1e-6;
};

// Over the last dim; weight [width]. In mixed precision it normalises float and gives what a matrix product reads.
template <typename P, typename D = Cpu>
class RmsNorm : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  RmsNorm(const Module<P, D>& parent, std::string_view name, const RmsNormOptions& options)
      : Module<P, D>(parent, name), epsilon_(options.epsilon) {
    weight = this->add_parameter("weight", {options.width}, Initializer::constant(1));
  }

  Variable<T, D> forward(const Variable<M, D>& x) const { return rms_norm<T, D>(x, weight.master(), epsilon_); }

  // {x + residual, its norm} in one pass over memory.
  std::pair<Variable<M, D>, Variable<T, D>> add_and_normalize(const Variable<M, D>& x, const Variable<T, D>& residual) const {
    return residual_rms_norm(x, residual, weight.master(), epsilon_);
  }

  Parameter<T, D, M> weight;

 private:
  double epsilon_;
};

struct EmbeddingOptions {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  Initializer initializer = Initializer::normal(0, 1);  // as torch.nn.Embedding
  std::int32_t padding_idx = -1;                        // a row that gets no gradient; below 0: none
};

// A table of vectors; weight [rows, width].
template <typename P, typename D = Cpu>
class Embedding : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  Embedding(const Module<P, D>& parent, std::string_view name, const EmbeddingOptions& options)
      : Module<P, D>(parent, name), padding_idx_(options.padding_idx) {
    weight = this->add_parameter("weight", {options.rows, options.width}, options.initializer);
  }

  Variable<M, D> forward(const Tensor<std::int32_t, D>& index) const { return embedding(index, weight.master(), padding_idx_); }

  Parameter<T, D, M> weight;

 private:
  std::int32_t padding_idx_;
};

// Dropout whose random numbers are named after this module: any number of ranks drops the same elements. Evaluation, or a
// forward pass without a tape, drops nothing.
template <typename P, typename D = Cpu>
class Dropout : public Module<P, D> {
 public:
  Dropout(const Module<P, D>& parent, std::string_view name, double probability)
      : Module<P, D>(parent, name), probability_(probability) {}

  template <typename T>
  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->training() ? dropout(x, probability_, this->name()) : x;
  }

 private:
  double probability_;
};

}  // namespace trireme::nn
