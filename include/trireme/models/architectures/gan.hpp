#pragma once

#include "trireme/autograd/frozen_parameters.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/convolution/convolution.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/nn/staged/staged.hpp"

// Generative adversarial networks (Goodfellow et al. 2014, arXiv 1406.2661). A generator makes images [batch, height, width,
// channels] in [-1, 1] from latent vectors [batch, latent]. A discriminator gives each image a logit [batch, 1], which is
// above 0 if it takes the image as real. The two are separate models, each with a store of its own. Names and shapes of
// weights are as in torch.nn.
namespace trireme TRIREME_EXPORT {
namespace models {

struct MlpGanOptions {
  ops::Extent2d image = {28, 28};
  std::int64_t channels = 1;  // of an image
  std::int64_t latent = 64;
  std::int64_t hidden = 256;
  double slope = 0.2;  // of the leaky ReLU
};

// Linear, leaky ReLU, linear, tanh.
template <typename P, typename D = Cpu>
class MlpGenerator : public nn::Staged<P, D, Tensor<typename P::Master, D>, Variable<typename P::Compute, D>> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  explicit MlpGenerator(const MlpGanOptions& options, const ModelContext& context = {});

  Variable<T, D> images(const Tensor<M, D>& latent) const { return this->forward(latent); }

 private:
  MlpGanOptions options_;
  nn::Linear<P, D> fc1_;
  nn::Linear<P, D> fc2_;
};

// Linear, leaky ReLU, linear.
template <typename P, typename D = Cpu>
class MlpDiscriminator : public nn::Staged<P, D, Variable<typename P::Compute, D>, Variable<typename P::Compute, D>> {
 public:
  using T = typename P::Compute;

  explicit MlpDiscriminator(const MlpGanOptions& options, const ModelContext& context = {});

  Variable<T, D> logits(const Variable<T, D>& images) const { return this->forward(images); }

 private:
  MlpGanOptions options_;
  nn::Linear<P, D> fc1_;
  nn::Linear<P, D> fc2_;
};

// The height and width of an image must be multiples of 4.
struct DcGanOptions {
  ops::Extent2d image = {28, 28};
  std::int64_t channels = 1;
  std::int64_t latent = 64;
  std::int64_t features = 64;  // channels of the discriminator's first layer and the generator's last hidden layer
  double slope = 0.2;          // of the discriminator's leaky ReLU
  Initializer weight_initializer = Initializer::normal(0, 0.02);
  Initializer norm_weight_initializer = Initializer::normal(1, 0.02);
};

// A DCGAN (Radford, Metz, Chintala 2015, arXiv 1511.06434) of two levels. The generator has three transposed convolutions,
// which return a quarter, a half and the whole of the image's height and width. Batch norm and ReLU are between the
// convolutions, and tanh is at the end.
template <typename P, typename D = Cpu>
class DcGenerator : public nn::Staged<P, D, Tensor<typename P::Master, D>, Variable<typename P::Compute, D>> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  explicit DcGenerator(const DcGanOptions& options, const ModelContext& context = {});

  Variable<T, D> images(const Tensor<M, D>& latent) const { return this->forward(latent); }

 private:
  DcGanOptions options_;
  nn::ConvTranspose2d<P, D> ct1_;
  nn::BatchNorm2d<P, D> bn1_;
  nn::ConvTranspose2d<P, D> ct2_;
  nn::BatchNorm2d<P, D> bn2_;
  nn::ConvTranspose2d<P, D> ct3_;
};

// Two convolutions with stride 2, leaky ReLU after each, batch norm after the second convolution; then a linear layer.
template <typename P, typename D = Cpu>
class DcDiscriminator : public nn::Staged<P, D, Variable<typename P::Compute, D>, Variable<typename P::Compute, D>> {
 public:
  using T = typename P::Compute;

  explicit DcDiscriminator(const DcGanOptions& options, const ModelContext& context = {});

  Variable<T, D> logits(const Variable<T, D>& images) const { return this->forward(images); }

 private:
  DcGanOptions options_;
  nn::Conv2d<P, D> conv1_;
  nn::Conv2d<P, D> conv2_;
  nn::BatchNorm2d<P, D> bn2_;
  nn::Linear<P, D> fc_;
};

// Mean binary cross-entropy of logits when all images are real, or when all are fake.
template <typename T, typename D>
Loss<Accumulate<T>, D> adversarial_loss(const Variable<T, D>& logits, bool real) {
  using A = Accumulate<T>;
  return bce_with_logits(logits, Tensor<A, D>::full(logits.shape(), real ? A{1} : A{0}));
}

// The discriminator's loss on real and fake images; the fake images are constants here. The discriminator makes two forward
// passes, so that batch norm normalises real and fake images separately.
template <typename Discriminator, typename T, typename D>
Loss<Accumulate<T>, D> discriminator_loss(const Discriminator& discriminator, const Variable<T, D>& real,
                                          const Variable<T, D>& fake) {
  const auto of_real = adversarial_loss(discriminator.logits(real), true);
  return add(of_real, adversarial_loss(discriminator.logits(fake.detach()), false));
}

// The generator's loss: how far the discriminator is from taking the fake images as real (the non-saturating loss). The
// discriminator's parameters are constants here.
template <typename Discriminator, typename T, typename D>
Loss<Accumulate<T>, D> generator_loss(const Discriminator& discriminator, const Variable<T, D>& fake) {
  const FrozenParameters frozen(discriminator);
  return adversarial_loss(discriminator.logits(fake), true);
}

extern template class MlpGenerator<Float32, Cpu>;
extern template class MlpGenerator<MixedBfloat16, Cpu>;
extern template class MlpGenerator<MixedFloat16, Cpu>;
extern template class MlpGenerator<Float32, Cuda>;
extern template class MlpGenerator<MixedBfloat16, Cuda>;
extern template class MlpGenerator<MixedFloat16, Cuda>;
extern template class MlpDiscriminator<Float32, Cpu>;
extern template class MlpDiscriminator<MixedBfloat16, Cpu>;
extern template class MlpDiscriminator<MixedFloat16, Cpu>;
extern template class MlpDiscriminator<Float32, Cuda>;
extern template class MlpDiscriminator<MixedBfloat16, Cuda>;
extern template class MlpDiscriminator<MixedFloat16, Cuda>;
extern template class DcGenerator<Float32, Cpu>;
extern template class DcGenerator<MixedBfloat16, Cpu>;
extern template class DcGenerator<MixedFloat16, Cpu>;
extern template class DcGenerator<Float32, Cuda>;
extern template class DcGenerator<MixedBfloat16, Cuda>;
extern template class DcGenerator<MixedFloat16, Cuda>;
extern template class DcDiscriminator<Float32, Cpu>;
extern template class DcDiscriminator<MixedBfloat16, Cpu>;
extern template class DcDiscriminator<MixedFloat16, Cpu>;
extern template class DcDiscriminator<Float32, Cuda>;
extern template class DcDiscriminator<MixedBfloat16, Cuda>;
extern template class DcDiscriminator<MixedFloat16, Cuda>;

}  // namespace models
}  // namespace trireme
