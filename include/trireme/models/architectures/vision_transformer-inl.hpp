#pragma once

#include <string_view>
#include <vector>

#include "trireme/autograd/composed/computed_weight.hpp"
#include "trireme/autograd/composed/operators.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/core/export.hpp"
#include "trireme/models/architectures/classification_loss.hpp"
#include "trireme/models/architectures/vision_transformer.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

inline VisionTransformerOptions checked(const VisionTransformerOptions& options) {
  require(options.layers > 0 && options.width > 0 && options.hidden > 0 && options.channels > 0 && options.classes > 0,
          "a vision transformer needs layers, width, hidden, channels and classes above 0, got {}, {}, {}, {} and {}",
          options.layers, options.width, options.hidden, options.channels, options.classes);
  require(options.patch_size > 0 && options.image_size > 0 && options.image_size % options.patch_size == 0,
          "a vision transformer's patches must divide its images, got images of {} x {} and patches of {} x {}",
          options.image_size, options.image_size, options.patch_size, options.patch_size);
  require(options.labels.empty() || std::ssize(options.labels) == options.classes,
          "a vision transformer names all of its {} classes or none, got {} labels", options.classes, options.labels.size());
  return options;
}

// Hugging Face transformers truncates initial values at -2 and 2; timm does this too, except for the class token and patches.
// These bounds are a hundred standard deviations away, so this code does not truncate.
inline Initializer first_weights(const VisionTransformerOptions& options) {
  return Initializer::normal(0, options.weight_deviation);
}

inline std::int64_t tokens_before_patches(const VisionTransformerOptions& options) { return options.distilled ? 2 : 1; }
inline std::int64_t patches_of(const VisionTransformerOptions& options) {
  const std::int64_t side = options.image_size / options.patch_size;
  return side * side;
}
inline std::int64_t time_of(const VisionTransformerOptions& options) {
  return tokens_before_patches(options) + patches_of(options);
}

inline nn::TransformerEncoderLayerOptions block_options(const VisionTransformerOptions& options) {
  return {.d_model = options.width,
          .nhead = options.heads,
          .dim_feedforward = options.hidden,
          .activation = options.activation,
          .layer_norm_eps = options.epsilon,
          .norm_first = true,
          .dropout = options.dropout,
          .attention_dropout = options.attention_dropout,
          .mlp_dropout = 0,
          .weight_initializer = first_weights(options)};
}

inline nn::LinearOptions head_options(const VisionTransformerOptions& options) {
  return {.in = options.width,
          .out = options.classes,
          .weight_initializer = first_weights(options),
          .bias_initializer = Initializer::constant(0)};
}

}  // namespace detail

template <typename P, typename D>
VisionTransformer<P, D>::Embeddings::Embeddings(const nn::Module<P, D>& parent, const VisionTransformerOptions& of_model)
    : nn::Module<P, D>(parent, "embeddings"), options(of_model), dropout(*this, "dropout", of_model.dropout) {
  const auto initializer = detail::first_weights(options);
  const std::int64_t width = options.width, patch = options.patch_size;
  cls_token = this->add_parameter("cls_token", {1, 1, width}, initializer);
  if (options.distilled) distillation_token = this->add_parameter("distillation_token", {1, 1, width}, initializer);
  position_embeddings = this->add_parameter("position_embeddings", {1, detail::time_of(options), width}, initializer);
  projection_weight =
      this->add_parameter("patch_embeddings.projection.weight", {width, options.channels, patch, patch}, initializer);
  projection_bias = this->add_parameter("patch_embeddings.projection.bias", {width}, Initializer::constant(0));
}

// Computes a convolution with stride = kernel as one product with the pixels of the patches.
template <typename P, typename D>
Variable<typename P::Compute, D> VisionTransformer<P, D>::Embeddings::patches(const Tensor<M, D>& images) const {
  const std::int64_t batch = images.dim(0), patch = options.patch_size, side = options.image_size / patch;
  const std::int64_t elements = options.channels * patch * patch;
  const auto pixels = permute(Variable<M, D>(images.reshape({batch, side, patch, side, patch, options.channels})),
                              {0, 1, 3, 5, 2, 4});  // [batch, side, side, channels, patch, patch]
  return linear(cast<T>(reshape(pixels, {batch, side * side, elements})),
                computed_weight<T>(reshape(this->shared(projection_weight), {options.width, elements})),
                this->shared(projection_bias));
}

template <typename P, typename D>
Variable<typename P::Master, D> VisionTransformer<P, D>::Embeddings::forward(const Tensor<M, D>& images) const {
  require(images.shape().size() == 4 && images.dim(1) == options.image_size && images.dim(2) == options.image_size &&
              images.dim(3) == options.channels,
          "this vision transformer reads images [batch, {}, {}, {}], got {}", options.image_size, options.image_size,
          options.channels, images.shape());
  const std::int64_t batch = images.dim(0), width = options.width, time = detail::time_of(options);
  std::vector<Variable<M, D>> tokens{expand(this->shared(cls_token), {batch, 1, width})};
  if (options.distilled) tokens.push_back(expand(this->shared(distillation_token), {batch, 1, width}));
  tokens.push_back(cast<M>(patches(images)));
  const auto all = cat(tokens, 1) + this->shared(position_embeddings);
  if (!this->sequence_parallel()) return dropout.forward(all);
  const Collectives& axis = *this->tensor_axis();
  require(divides_rows(batch * time, width, axis),
          "{} ranks of a sequence-parallel model can't divide {} images of {} tokens: take another batch size, or leave "
          "sequence_parallel off",
          axis.size(), batch, time);
  const Range rows = even_part(batch * time, axis);
  return dropout.forward(narrow(reshape(all, {batch * time, width}), 0, rows.begin, rows.count()));
}

template <typename P, typename D>
VisionTransformer<P, D>::Block::Block(const nn::Module<P, D>& parent, std::string_view name,
                                      const VisionTransformerOptions& options)
    : nn::TransformerEncoderLayer<P, D>(parent, name, detail::block_options(options)), time(detail::time_of(options)) {}

template <typename P, typename D>
VisionTransformer<P, D>::Backbone::Backbone(const nn::Module<P, D>& parent, const VisionTransformerOptions& options)
    : nn::Module<P, D>(parent, "vit"),
      embeddings(*this, options),
      layer(*this, "encoder.layer", options.layers, options),
      layernorm(*this, "layernorm", {.width = options.width, .epsilon = options.epsilon}) {}

template <typename P, typename D>
VisionTransformer<P, D>::VisionTransformer(const VisionTransformerOptions& options, const ModelContext& context)
    : VisionTransformer::Staged(context),
      options_(detail::checked(options)),
      vit_(*this, options_),
      classifier_(*this, options_.distilled ? "cls_classifier" : "classifier", detail::head_options(options_)) {
  require(!context.lora, "a VisionTransformer has no LoRA yet: Llama, Gpt, GptNeoX and models of your own have");
  const auto embed = [this](const Batch& batch) { return nn::Residual<P, D>{vit_.embeddings.forward(batch.images)}; };
  // Every rank of a tensor axis computes the whole heads.
  const auto head = [](const nn::Linear<P, D>& classifier, const Variable<T, D>& tokens, std::int64_t number) {
    const auto token = reshape(narrow(tokens, 1, number, 1), {tokens.shape()[0], tokens.shape()[2]});
    return linear(token, classifier.weight.variable(), classifier.bias.master());
  };
  if (!options_.distilled) {
    const auto output = [this, head](const nn::Residual<P, D>& x) { return head(classifier_, first_tokens(x), 0); };
    this->layers(this->layer({vit_.embeddings}, embed).costs(0), vit_.layer,
                 this->layer({vit_.layernorm, classifier_}, output).costs(0));
    return;
  }
  distillation_classifier_.emplace(*this, "distillation_classifier", detail::head_options(options_));
  const auto output = [this, head](const nn::Residual<P, D>& x) {
    const auto tokens = first_tokens(x);
    return scale(head(classifier_, tokens, 0) + head(*distillation_classifier_, tokens, 1), 0.5);
  };
  this->layers(this->layer({vit_.embeddings}, embed).costs(0), vit_.layer,
               this->layer({vit_.layernorm, classifier_, *distillation_classifier_}, output).costs(0));
}

template <typename P, typename D>
Variable<typename P::Compute, D> VisionTransformer<P, D>::first_tokens(const nn::Residual<P, D>& x) const {
  const std::int64_t count = detail::tokens_before_patches(options_);
  if (this->sequence_parallel()) {
    const auto rows = gather_rows(vit_.layernorm.forward(x), *this->tensor_axis());
    const std::int64_t time = detail::time_of(options_);
    return narrow(reshape(rows, {rows.shape()[0] / time, time, options_.width}), 1, 0, count);
  }
  nn::Residual<P, D> first{.stream = narrow(x.stream, 1, 0, count)};
  if (x.pending.value().defined()) first.pending = narrow(x.pending, 1, 0, count);
  return vit_.layernorm.forward(first);
}

template <typename P, typename D>
Loss<typename P::Master, D> VisionTransformer<P, D>::loss(const Variable<T, D>& logits, const Batch& batch) const {
  return classification_loss(logits, batch);
}

}  // namespace models
}  // namespace trireme
