#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_batch.hpp"
#include "trireme/nn/attention/encoder_layer.hpp"
#include "trireme/nn/base/module_list.hpp"
#include "trireme/nn/staged/staged.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

struct VisionTransformerOptions {
  int layers = 12;
  int heads = 12;
  std::int64_t width = 768;
  std::int64_t hidden = 3072;     // features of a block's MLP
  std::int64_t image_size = 224;  // pixels of an image's height, and of its width
  std::int64_t patch_size = 16;   // pixels of a patch's height, and of its width; divides image_size
  std::int64_t channels = 3;
  std::int64_t classes = 1000;
  ops::Activation activation = ops::Activation::gelu_erf;
  double epsilon = 1e-6;                 // of the norms
  double dropout = 0;                    // of the embedding and of the outputs of attention and MLP
  double attention_dropout = 0;          // of attention weights, see nn::MultiheadAttentionOptions
  bool distilled = false;                // as in DeiT, a second token has its own head; both heads' logits are averaged
  std::vector<std::string> labels = {};  // the names of the classes, or none
  double weight_deviation = 0.02;        // standard deviation of initial weights

  // The sizes of the DeiT and ViT papers. Unless changed, images have 224 x 224 pixels and patches 16 x 16.
  static VisionTransformerOptions tiny() { return {.heads = 3, .width = 192, .hidden = 768}; }
  static VisionTransformerOptions small() { return {.heads = 6, .width = 384, .hidden = 1536}; }
  static VisionTransformerOptions base() { return {}; }
  static VisionTransformerOptions large() { return {.layers = 24, .heads = 16, .width = 1024, .hidden = 4096}; }
};

// A Vision Transformer (Dosovitskiy et al. 2020, arXiv 2010.11929), or with `distilled` a DeiT (Touvron et al. 2020, arXiv
// 2012.12877). Names are those of Hugging Face's ViTForImageClassification, but the blocks have torch.nn's names. Initial
// values are those of Hugging Face transformers. On a tensor axis the ranks divide heads and hidden features. The list of
// layers is the embedding of patches, the blocks, and the norm with the head; without ModelContext::layer_costs the blocks are
// divided evenly over the stages.
template <typename P, typename D = Cpu>
class VisionTransformer : public nn::Staged<P, D, data::BasicImageBatch<D, typename P::Master>, nn::Residual<P, D>> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;
  using Batch = data::BasicImageBatch<D, M>;

  explicit VisionTransformer(const VisionTransformerOptions& options, const ModelContext& context = {});

  const VisionTransformerOptions& options() const { return options_; }

  // images [batch, image_size, image_size, channels] -> [batch, classes]
  Variable<T, D> logits(const Tensor<M, D>& images) const { return this->forward({.images = images, .labels = {}}); }

  // labels [batch], and soft_labels [batch, classes] if the batch has them, see classification_loss().
  Loss<M, D> loss(const Variable<T, D>& logits, const Batch& batch) const;
  Loss<M, D> loss(const Tensor<M, D>& images, const Tensor<std::int32_t, D>& labels) const {
    return nn::loss_of(*this, {.images = images, .labels = labels});
  }

 private:
  // Images -> [batch, time, width], or in a sequence-parallel model this rank's rows of this result.
  struct Embeddings : nn::Module<P, D> {
    Embeddings(const nn::Module<P, D>& parent, const VisionTransformerOptions& options);
    Variable<M, D> forward(const Tensor<M, D>& images) const;
    Variable<T, D> patches(const Tensor<M, D>& images) const;  // [batch, patches, width]

    const VisionTransformerOptions& options;
    Parameter<T, D, M> cls_token;
    Parameter<T, D, M> distillation_token;
    Parameter<T, D, M> position_embeddings;
    Parameter<T, D, M> projection_weight;  // [width, channels, patch_size, patch_size]
    Parameter<T, D, M> projection_bias;
    nn::Dropout<P, D> dropout;
  };

  struct Block : nn::TransformerEncoderLayer<P, D> {
    Block(const nn::Module<P, D>& parent, std::string_view name, const VisionTransformerOptions& options);
    nn::Residual<P, D> forward(const nn::Residual<P, D>& x) const {
      return nn::TransformerEncoderLayer<P, D>::forward(x, time);
    }

    std::int64_t time;
  };

  struct Backbone : nn::Module<P, D> {
    Backbone(const nn::Module<P, D>& parent, const VisionTransformerOptions& options);

    Embeddings embeddings;
    nn::ModuleList<Block> layer;
    nn::LayerNorm<P, D> layernorm;
  };

  // The tokens that the heads read, after the norm: [batch, 1 or 2, width].
  Variable<T, D> first_tokens(const nn::Residual<P, D>& x) const;

  VisionTransformerOptions options_;
  Backbone vit_;
  nn::Linear<P, D> classifier_;
  std::optional<nn::Linear<P, D>> distillation_classifier_;
};

extern template class VisionTransformer<Float32, Cpu>;
extern template class VisionTransformer<MixedBfloat16, Cpu>;
extern template class VisionTransformer<MixedFloat16, Cpu>;
extern template class VisionTransformer<Float32, Cuda>;
extern template class VisionTransformer<MixedBfloat16, Cuda>;
extern template class VisionTransformer<MixedFloat16, Cuda>;

}  // namespace models
}  // namespace trireme
