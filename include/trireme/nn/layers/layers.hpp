#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/embedding.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/norm.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/first_values.hpp"
#include "trireme/nn/base/module.hpp"
#include "trireme/nn/base/residual.hpp"
#include "trireme/nn/layers/lora_adapter.hpp"
#include "trireme/ops/embedding/embedding.hpp"
#include "trireme/ops/matmul/float8.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

struct LinearOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = true;
  TensorSplit split = TensorSplit::none;
  // Products of 8-bit operands (float8_linear); requires MixedBfloat16 and a layer that is not split. Without a tape, products
  // with a number of rows that is not a multiple of 16, for example when a model generates text, are computed in bfloat16.
  Float8Scaling fp8 = Float8Scaling::none;
  int fp8_amax_history = 16;  // number of calls that delayed scaling looks back
  // Sizes of the parts of the outputs, e.g. queries, keys, values; a column split divides each part.
  std::vector<std::int64_t> packed = {};
  // Names of the packed parts for LoRA's targets, if each part has its own adapter. Empty: the layer has one adapter, under its
  // own name.
  std::vector<std::string> packed_names = {};
  bool adaptable = true;                               // may get a LoRA adapter; false if the weight is used without forward()
  std::optional<Initializer> weight_initializer = {};  // uniform in +-1 / sqrt(in) unless given, as torch.nn.Linear
  std::optional<Initializer> bias_initializer = {};    // likewise
};

// y = x weight^T + bias; weight [out, in], bias [out]. If the layer is split, weight and bias hold this rank's part.
template <typename P, typename D = Cpu>
class Linear : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  Linear(const Module<P, D>& parent, std::string_view name, const LinearOptions& options)
      : Module<P, D>(parent, name),
        split_(this->tensor_axis() == nullptr ? TensorSplit::none : options.split),
        fp8_(options.fp8) {
    require(options.in > 0 && options.out > 0, "{}: a linear layer needs in and out above 0, got {} and {}", this->name(),
            options.in, options.out);
    require(fp8_ == Float8Scaling::none || (has_fp8 && split_ == TensorSplit::none),
            "{}: fp8 needs MixedBfloat16 and a layer that no axis divides", this->name());
    const std::int64_t packed = std::accumulate(options.packed.begin(), options.packed.end(), std::int64_t{0});
    require(options.packed.empty() || packed == options.out, "{}: the packed outputs are {} together, not {}", this->name(),
            packed, options.out);
    require(options.packed_names.empty() || options.packed_names.size() == options.packed.size(),
            "{}: {} packed outputs have {} names", this->name(), options.packed.size(), options.packed_names.size());
    const Initializer standard = uniform_by_fan_in(options.in);
    Placement of_weight{.shape = {options.out, options.in}};
    Placement of_bias{.shape = {options.out}};
    if (split_ == TensorSplit::column) {
      of_weight.dim = of_bias.dim = 0;
      of_weight.ranges = of_bias.ranges = output_parts(options);
    } else if (split_ == TensorSplit::row) {
      of_weight.dim = 1;
      of_weight.ranges = {even_part(options.in, *this->tensor_axis())};
    }
    weight = this->add_parameter("weight", of_weight, options.weight_initializer.value_or(standard));
    if (options.bias) bias = this->add_parameter("bias", of_bias, options.bias_initializer.value_or(standard));
    if (fp8_ == Float8Scaling::delayed) keep_amaxes(options.fp8_amax_history);
    if (options.adaptable) make_adapter(parent, name, options);
  }

  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] {
      const Variable<T, D> y = product(x);
      return is_adapted() ? adapter_->add_to(y, x) : y;
    });
  }

  // Whether forward(x) is just linear(x, weight, bias): no split, no fp8, no adapter.
  bool is_plain() const { return split_ == TensorSplit::none && fp8_ == Float8Scaling::none && !is_adapted(); }

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;

 private:
  static constexpr bool has_fp8 = std::is_same_v<T, bfloat16>;

  bool is_adapted() const { return adapter_ != nullptr && !this->model().adapter_merged(); }

  Variable<T, D> product(const Variable<T, D>& x) const {
    switch (split_) {
      case TensorSplit::column:
        return column_parallel_linear(x, weight.variable(), bias.master(), *this->tensor_axis(), this->sequence_parallel());
      case TensorSplit::row:
        return row_parallel_linear(x, weight.variable(), bias.master(), *this->tensor_axis(), this->sequence_parallel());
      case TensorSplit::none: break;
    }
    require(!this->sequence_parallel(), "{}: a linear layer of a sequence-parallel model must be split, by column or by row",
            this->name());
    if constexpr (has_fp8) {
      const bool fits = x.shape().rows() % ops::float8_multiple == 0 || Tape::current() != nullptr;
      if (fp8_ != Float8Scaling::none && fits) return float8_linear(x, weight.variable(), bias.master(), fp8_history());
    }
    return linear(x, weight.variable(), bias.master());
  }

  void make_adapter(const Module<P, D>& parent, std::string_view name, const LinearOptions& options) {
    const std::optional<LoraOptions>& lora = this->context().lora;
    const bool has_parts = !options.packed_names.empty();
    const std::vector<std::int64_t> packed = options.packed.empty() ? std::vector{options.out} : options.packed;
    const std::string before = this->name().substr(0, this->name().size() - name.size());
    TargetableLayer layer{.module = this->name()};
    LoraLayer adapted{.in = options.in, .split = split_};
    for (std::size_t i = 0; i < packed.size(); ++i) {
      if (i == 0 || has_parts) {
        const std::string of_part = has_parts ? before + options.packed_names[i] : this->name();
        layer.parts.push_back({.name = of_part, .is_target = lora && lora->is_target(of_part)});
      }
      layer.parts.back().rows += packed[i];
      adapted.outputs.push_back(
          {.count = packed[i], .part = static_cast<int>(layer.parts.size()) - 1, .is_target = layer.parts.back().is_target});
    }
    if (adapted.num_targets() > 0) adapter_ = std::make_shared<LoraAdapter<P, D>>(parent, name, *lora, adapted);
    this->model().add_targetable(std::move(layer));
  }

  void keep_amaxes(int calls) {
    require(calls > 0, "{}: fp8_amax_history is above 0, got {}", this->name(), calls);
    const BufferOptions of_training{.reduction = BufferReduction::max, .in_weights = false};
    amaxes_of_x_ = this->add_buffer("fp8_amaxes_of_x", {calls}, 0, of_training);
    amaxes_of_weight_ = this->add_buffer("fp8_amaxes_of_weight", {calls}, 0, of_training);
    amaxes_of_dy_ = this->add_buffer("fp8_amaxes_of_dy", {calls}, 0, of_training);
  }

  Float8History<D> fp8_history() const {
    if (fp8_ != Float8Scaling::delayed) return {};
    return {.x = amaxes_of_x_.value(),
            .weight = amaxes_of_weight_.value(),
            .dy = amaxes_of_dy_.value(),
            .update = this->training() && Tape::current() != nullptr};
  }

  std::vector<Range> output_parts(const LinearOptions& options) const {
    const std::vector<std::int64_t> packed = options.packed.empty() ? std::vector{options.out} : options.packed;
    std::vector<Range> parts;
    std::int64_t first = 0;
    for (const std::int64_t count : packed) {
      const Range part = even_part(count, *this->tensor_axis());
      parts.push_back({first + part.begin, first + part.end});
      first += count;
    }
    return parts;
  }

  TensorSplit split_;
  Float8Scaling fp8_;
  std::shared_ptr<LoraAdapter<P, D>> adapter_;  // a shared_ptr, so that copying a layer gives Module's error message
  Buffer<M, D> amaxes_of_x_;                    // these three buffers: only with delayed scaling
  Buffer<M, D> amaxes_of_weight_;
  Buffer<M, D> amaxes_of_dy_;
};

struct LayerNormOptions {
  std::int64_t width = 0;
  double epsilon = 1e-5;
};

// Layer norm over the last dim; weight and bias [width]. In mixed precision the input is float and the result has the compute
// type.
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
    return this->named([&] { return layer_norm<T, D>(x, this->shared(weight), this->shared(bias), epsilon_); });
  }

  // Returns {x + residual, the norm of this sum} in one pass over memory.
  std::pair<Variable<M, D>, Variable<T, D>> add_and_normalize(const Variable<M, D>& x, const Variable<T, D>& residual) const {
    return this->named([&] { return residual_layer_norm(x, residual, this->shared(weight), this->shared(bias), epsilon_); });
  }

  // The norm of x, or of x + residual, in the master type, for the residual stream of post-norm layers.
  Variable<M, D> normalize_stream(const Variable<M, D>& x) const {
    return this->named([&] { return layer_norm<M, D>(x, this->shared(weight), this->shared(bias), epsilon_); });
  }
  Variable<M, D> normalize_stream(const Variable<M, D>& x, const Variable<T, D>& residual) const {
    return this->named(
        [&] { return residual_layer_norm(x, cast<M>(residual), this->shared(weight), this->shared(bias), epsilon_).second; });
  }

  Variable<T, D> forward(const Residual<P, D>& x) const { return settle(*this, x).second; }

  Parameter<T, D, M> weight;
  Parameter<T, D, M> bias;

 private:
  double epsilon_;
};

struct RmsNormOptions {
  std::int64_t width = 0;
  double epsilon = 1e-6;
};

// RMS norm over the last dim; weight [width]. In mixed precision the input is float and the result has the compute type.
template <typename P, typename D = Cpu>
class RmsNorm : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  RmsNorm(const Module<P, D>& parent, std::string_view name, const RmsNormOptions& options)
      : Module<P, D>(parent, name), epsilon_(options.epsilon) {
    weight = this->add_parameter("weight", {options.width}, Initializer::constant(1));
  }

  Variable<T, D> forward(const Variable<M, D>& x) const {
    return this->named([&] { return rms_norm<T, D>(x, this->shared(weight), epsilon_); });
  }

  // Returns {x + residual, the norm of this sum} in one pass over memory.
  std::pair<Variable<M, D>, Variable<T, D>> add_and_normalize(const Variable<M, D>& x, const Variable<T, D>& residual) const {
    return this->named([&] { return residual_rms_norm(x, residual, this->shared(weight), epsilon_); });
  }

  Variable<T, D> forward(const Residual<P, D>& x) const { return settle(*this, x).second; }

  Parameter<T, D, M> weight;

 private:
  double epsilon_;
};

struct EmbeddingOptions {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  Initializer initializer = Initializer::normal(0, 1);  // as torch.nn.Embedding
  // A row that starts as zeros and gets no gradient; negative numbers count from the end. As in torch, loaded weights may have
  // other values in this row.
  std::optional<std::int32_t> padding_idx = {};
  bool split = false;  // the ranks of a tensor axis divide the rows; not together with padding_idx
};

// A table of vectors; weight [rows, width]. If the table is split, weight holds this rank's rows.
template <typename P, typename D = Cpu>
class Embedding : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  Embedding(const Module<P, D>& parent, std::string_view name, const EmbeddingOptions& options)
      : Module<P, D>(parent, name), split_(options.split && this->tensor_axis() != nullptr), rows_(options.rows) {
    require(options.rows > 0 && options.width > 0, "{}: an embedding needs rows and width above 0, got {} and {}", this->name(),
            options.rows, options.width);
    require(!options.split || !options.padding_idx, "{}: an embedding whose rows are split has no padding_idx", this->name());
    Initializer initializer = options.initializer;
    if (options.padding_idx) {
      padding_idx_ = ops::padding_row(options.padding_idx, options.rows);
      initializer.zeros = {*padding_idx_ * options.width, (*padding_idx_ + 1) * options.width};
    }
    Placement placement{.shape = {options.rows, options.width}};
    if (split_) {
      placement.dim = 0;
      placement.ranges = {even_part(options.rows, *this->tensor_axis())};
    }
    weight = this->add_parameter("weight", placement, initializer);
    this->model().set_lookup(weight.number());
  }

  // index [...] -> [..., width]; if split in a sequence-parallel model, this rank's rows [rows, width].
  Variable<M, D> forward(const Tensor<std::int32_t, D>& index) const {
    return this->named([&] {
      if (split_)
        return vocab_parallel_embedding(index, weight.master(), held_rows().begin, rows_, *this->tensor_axis(),
                                        this->sequence_parallel());
      return embedding(index, this->shared(weight), padding_idx_);
    });
  }

  Range held_rows() const { return split_ ? even_part(rows_, *this->tensor_axis()) : Range{0, rows_}; }

  Parameter<T, D, M> weight;

 private:
  bool split_;
  std::int64_t rows_;
  std::optional<std::int32_t> padding_idx_;  // 0 or more
};

// Dropout whose random numbers are named after this module: the same elements are dropped on any number of ranks, and a second
// call in the same micro-batch drops other elements. The tape needs TapeOptions. Evaluation, or a forward pass without a tape,
// drops nothing. Dim 0 holds one sample after the other, each with the same number of rows; in a sequence-parallel model x
// holds this rank's rows. Not for use between a column-parallel and a row-parallel layer, because there the ranks divide the
// features.
template <typename P, typename D = Cpu>
class Dropout : public Module<P, D> {
 public:
  Dropout(const Module<P, D>& parent, std::string_view name, double probability)
      : Module<P, D>(parent, name), probability_(probability) {}

  template <typename T>
  Variable<T, D> forward(const Variable<T, D>& x) const {
    return this->named([&] {
      if (!this->training()) return x;
      DropoutRows rows;
      if (this->sequence_parallel() && x.shape().size() > 0) {
        rows.first = x.shape()[0] * this->tensor_axis()->rank();
        rows.all = x.shape()[0] * this->tensor_axis()->size();
      }
      return dropout(x, probability_, this->name(), rows);
    });
  }

 private:
  double probability_;
};

}  // namespace nn
}  // namespace trireme
