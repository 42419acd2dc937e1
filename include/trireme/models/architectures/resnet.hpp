#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_batch.hpp"
#include "trireme/nn/base/module_list.hpp"
#include "trireme/nn/convolution/convolution.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/nn/staged/staged.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

struct ResNetOptions {
  enum class Block : std::uint8_t {
    basic,       // 3x3, 3x3
    bottleneck,  // 1x1, 3x3 with the stride (as in torchvision), 1x1 to four times the width
  };
  enum class Stem : std::uint8_t {
    cifar,     // 3x3
    imagenet,  // 7x7 with stride 2, max pooling 3x3 with stride 2
  };
  Block block = Block::basic;
  Stem stem = Stem::cifar;
  std::vector<std::int64_t> widths = {64, 128, 256, 512};  // of the layers; every layer but the first halves height and width
  std::vector<int> blocks = {2, 2, 2, 2};                  // of each layer
  std::int64_t channels = 3;                               // of an image
  std::int64_t classes = 10;

  // The options of torchvision's networks of these names. Unless changed, the stem and the classes are those for CIFAR-10.
  static ResNetOptions resnet18() { return {}; }
  static ResNetOptions resnet50() { return {.block = Block::bottleneck, .blocks = {3, 4, 6, 3}}; }
};

// A residual network (He et al. 2015, arXiv 1512.03385). Names and shapes of weights are as in torchvision. The list of layers
// is the stem, the blocks, and pooling with the linear layer. The multiplications of the convolutions decide how the layers
// are divided into stages.
template <typename P, typename D = Cpu>
class ResNet : public nn::Staged<P, D, data::BasicImageBatch<D, typename P::Master>, Variable<typename P::Compute, D>> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;
  using Batch = data::BasicImageBatch<D, M>;

  explicit ResNet(const ResNetOptions& options, const ModelContext& context = {});
  ~ResNet();

  // images [batch, height, width, channels] -> [batch, classes]
  Variable<T, D> logits(const Tensor<M, D>& images) const { return this->forward({.images = images, .labels = {}}); }

  // labels [batch], and soft_labels [batch, classes] if the batch has them, see classification_loss().
  Loss<M, D> loss(const Variable<T, D>& logits, const Batch& batch) const;
  Loss<M, D> loss(const Tensor<M, D>& images, const Tensor<std::int32_t, D>& labels) const {
    return nn::loss_of(*this, {.images = images, .labels = labels});
  }

 private:
  // 1x1 convolution and batch norm on the shortcut of a block that changes the shape.
  struct Downsample;
  struct Block;

  ResNetOptions options_;
  nn::Conv2d<P, D> conv1_;
  nn::BatchNorm2d<P, D> bn1_;
  nn::ModuleList<Block> blocks_;
  nn::Linear<P, D> fc_;
};

extern template class ResNet<Float32, Cpu>;
extern template class ResNet<MixedBfloat16, Cpu>;
extern template class ResNet<MixedFloat16, Cpu>;
extern template class ResNet<Float32, Cuda>;
extern template class ResNet<MixedBfloat16, Cuda>;
extern template class ResNet<MixedFloat16, Cuda>;

}  // namespace models
}  // namespace trireme
