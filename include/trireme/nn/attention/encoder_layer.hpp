#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/autograd/composed/gated.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/attention/attention.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/ops/elementwise/elementwise_options.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

struct TransformerEncoderLayerOptions {
  std::int64_t d_model = 0;
  int nhead = 1;
  std::int64_t dim_feedforward = 2048;
  ops::Activation activation = ops::Activation::relu;
  double layer_norm_eps = 1e-5;
  bool norm_first = false;  // norms before attention and MLP (pre-norm), otherwise after the residual is added (post-norm)
  double dropout = 0;       // of the outputs of attention and MLP; also the default of the next two members, as in torch
  std::optional<double> attention_dropout = {};        // of attention weights, see nn::MultiheadAttentionOptions
  std::optional<double> mlp_dropout = {};              // of the activations between linear1 and linear2
  std::optional<Initializer> weight_initializer = {};  // not given: as nn::Linear; if given, biases are 0
};

// Bidirectional self-attention and an MLP (Vaswani et al. 2017, arXiv 1706.03762), with the parameters of
// torch.nn.TransformerEncoderLayer. forward() takes and returns a residual stream [batch, time, d_model]; in a
// sequence-parallel model the stream is this rank's rows [rows, d_model]. The ranks of a tensor axis divide the heads and the
// features of the MLP.
template <typename P, typename D = Cpu>
class TransformerEncoderLayer : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  TransformerEncoderLayer(const Module<P, D>& parent, std::string_view name, const TransformerEncoderLayerOptions& options)
      : Module<P, D>(parent, name),
        self_attn(*this, "self_attn",
                  {.embed_dim = options.d_model,
                   .num_heads = options.nhead,
                   .dropout = options.attention_dropout.value_or(options.dropout),
                   .weight_initializer = options.weight_initializer}),
        linear1(*this, "linear1", linear(options, TensorSplit::column)),
        linear2(*this, "linear2", linear(options, TensorSplit::row)),
        norm1(*this, "norm1", {.width = options.d_model, .epsilon = options.layer_norm_eps}),
        norm2(*this, "norm2", {.width = options.d_model, .epsilon = options.layer_norm_eps}),
        dropout1(*this, "dropout1", options.dropout),
        dropout2(*this, "dropout2", options.dropout),
        activation_(options.activation),
        norm_first_(options.norm_first),
        mlp_dropout_(options.mlp_dropout.value_or(options.dropout)),
        dim_feedforward_(options.dim_feedforward) {
    require(mlp_dropout_ >= 0 && mlp_dropout_ < 1, "{}: mlp_dropout {} does not lie in [0, 1)", this->name(), mlp_dropout_);
  }

  // time: length of a sequence. key_padding_mask [batch, time], not 0 where a token is padding; may be undefined.
  Residual<P, D> forward(const Residual<P, D>& x, std::int64_t time,
                         const Tensor<std::int32_t, D>& key_padding_mask = {}) const {
    if (norm_first_) {
      const auto [stream, normalized] = settle(norm1, x);
      const auto [middle, middle_normalized] = norm2.add_and_normalize(stream, attend(normalized, time, key_padding_mask));
      return {.stream = middle, .pending = transform(middle_normalized)};
    }
    const Variable<M, D> stream = x.settled().stream;
    const auto middle = norm1.normalize_stream(stream, attend(cast<T>(stream), time, key_padding_mask));
    return {.stream = norm2.normalize_stream(middle, transform(cast<T>(middle)))};
  }
  template <typename Batch>
  requires requires(const Batch& batch) { batch.time(), batch.key_padding_mask; }
  Residual<P, D> forward(const Residual<P, D>& x, const Batch& batch) const {
    return forward(x, batch.time(), batch.key_padding_mask);
  }

  MultiheadAttention<P, D> self_attn;
  Linear<P, D> linear1;
  Linear<P, D> linear2;
  LayerNorm<P, D> norm1;
  LayerNorm<P, D> norm2;
  Dropout<P, D> dropout1;
  Dropout<P, D> dropout2;

 private:
  static LinearOptions linear(const TransformerEncoderLayerOptions& options, TensorSplit split) {
    const bool is_last = split == TensorSplit::row;
    return {.in = is_last ? options.dim_feedforward : options.d_model,
            .out = is_last ? options.d_model : options.dim_feedforward,
            .split = split,
            .weight_initializer = options.weight_initializer,
            .bias_initializer = options.weight_initializer ? std::optional(Initializer::constant(0)) : std::nullopt};
  }

  Variable<T, D> attend(const Variable<T, D>& x, std::int64_t time, const Tensor<std::int32_t, D>& padding) const {
    return dropout1.forward(self_attn.forward(x, padding, time));
  }
  Variable<T, D> transform(const Variable<T, D>& x) const {
    return dropout2.forward(linear2.forward(dropped(activation(activation_, linear1.forward(x)))));
  }
  Variable<T, D> dropped(const Variable<T, D>& activations) const {
    if (mlp_dropout_ == 0 || !this->training() || Tape::current() == nullptr) return activations;
    return this->named([&] {
      const std::string stream = this->name() + ".dropout";
      const Collectives* axis = this->tensor_axis();
      if (axis == nullptr) return trireme::dropout(activations, mlp_dropout_, stream);
      return dropout_of_part(activations, even_part(dim_feedforward_, *axis), dim_feedforward_, mlp_dropout_, stream);
    });
  }

  ops::Activation activation_;
  bool norm_first_;
  double mlp_dropout_;
  std::int64_t dim_feedforward_;
};

}  // namespace nn
}  // namespace trireme
