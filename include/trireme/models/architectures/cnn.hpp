#pragma once

#include <optional>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_batch.hpp"
#include "trireme/nn/convolution/convolution.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/nn/staged/staged.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

struct CnnOptions {
  ops::Extent2d image = {28, 28};
  std::int64_t channels = 1;  // of an image
  std::int64_t first = 32;    // channels after the first convolution
  std::int64_t second = 64;   // channels after the second
  std::int64_t hidden = 128;
  std::int64_t classes = 10;
  bool batch_norm = true;  // after each convolution
  double dropout = 0;      // of the hidden layer
};

// A small classifier of images: two blocks of 3x3 convolution, batch norm, ReLU and 2x2 max pooling, then two linear layers.
// Names and shapes are as in torch.nn; fc1 reads channels before pixels, as torch flattens. The list has four layers: each
// convolution with the layers up to its pooling, and each linear layer.
template <typename P, typename D = Cpu>
class Cnn : public nn::Staged<P, D, data::BasicImageBatch<D, typename P::Master>, Variable<typename P::Compute, D>> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;
  using Batch = data::BasicImageBatch<D, M>;

  explicit Cnn(const CnnOptions& options, const ModelContext& context = {});

  // images [batch, height, width, channels] -> [batch, classes]
  Variable<T, D> logits(const Tensor<M, D>& images) const { return this->forward({.images = images, .labels = {}}); }

  // labels [batch], and soft_labels [batch, classes] if the batch has them, see classification_loss().
  Loss<M, D> loss(const Variable<T, D>& logits, const Batch& batch) const;
  Loss<M, D> loss(const Tensor<M, D>& images, const Tensor<std::int32_t, D>& labels) const {
    return nn::loss_of(*this, {.images = images, .labels = labels});
  }

 private:
  CnnOptions options_;
  nn::Conv2d<P, D> conv1_;
  std::optional<nn::BatchNorm2d<P, D>> bn1_;
  nn::Conv2d<P, D> conv2_;
  std::optional<nn::BatchNorm2d<P, D>> bn2_;
  nn::Linear<P, D> fc1_;
  nn::Dropout<P, D> dropout_;
  nn::Linear<P, D> fc2_;
};

extern template class Cnn<Float32, Cpu>;
extern template class Cnn<MixedBfloat16, Cpu>;
extern template class Cnn<MixedFloat16, Cpu>;
extern template class Cnn<Float32, Cuda>;
extern template class Cnn<MixedBfloat16, Cuda>;
extern template class Cnn<MixedFloat16, Cuda>;

}  // namespace models
}  // namespace trireme
