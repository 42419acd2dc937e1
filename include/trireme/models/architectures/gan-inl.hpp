#pragma once

#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/core/export.hpp"
#include "trireme/models/architectures/gan.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

inline MlpGanOptions checked(const MlpGanOptions& options) {
  require(options.image.height > 0 && options.image.width > 0 && options.channels > 0,
          "a GAN makes images of 1 x 1 pixel and 1 channel or more, got {} x {} x {}", options.image.height,
          options.image.width, options.channels);
  require(options.latent > 0 && options.hidden > 0, "a GAN needs latent and hidden above 0, got {} and {}", options.latent,
          options.hidden);
  return options;
}

inline DcGanOptions checked(const DcGanOptions& options) {
  const ops::Extent2d& image = options.image;
  require(image.height > 0 && image.width > 0 && image.height % 4 == 0 && image.width % 4 == 0,
          "the height and width of a DCGAN's images must be multiples of 4, got {} x {}", image.height, image.width);
  require(options.channels > 0 && options.latent > 0 && options.features > 0,
          "a DCGAN needs channels, latent and features above 0, got {}, {} and {}", options.channels, options.latent,
          options.features);
  return options;
}

template <typename Options>
void require_latent(const Shape& latent, const Options& options) {
  require(latent.size() == 2 && latent[1] == options.latent, "this generator reads latent vectors [batch, {}], got {}",
          options.latent, latent);
}

template <typename Options>
void require_images(const Shape& images, const Options& options) {
  require(images.size() == 4 && images[1] == options.image.height && images[2] == options.image.width &&
              images[3] == options.channels,
          "this discriminator reads images [batch, {}, {}, {}], got {}", options.image.height, options.image.width,
          options.channels, images);
}

inline std::int64_t numel_of_image(const MlpGanOptions& options) {
  return options.channels * options.image.height * options.image.width;
}

inline ops::Extent2d quarter(const ops::Extent2d& image) { return {image.height / 4, image.width / 4}; }

// Doubles height and width.
inline nn::ConvTranspose2dOptions doubling(std::int64_t in, std::int64_t out, const DcGanOptions& options) {
  return {.in = in,
          .out = out,
          .kernel = 4,
          .stride = 2,
          .padding = 1,
          .bias = false,
          .weight_initializer = options.weight_initializer};
}

// Halves height and width.
inline nn::Conv2dOptions halving(std::int64_t in, std::int64_t out, bool bias, const DcGanOptions& options) {
  return {.in = in,
          .out = out,
          .kernel = 4,
          .stride = 2,
          .padding = 1,
          .bias = bias,
          .weight_initializer = options.weight_initializer};
}

inline nn::BatchNormOptions norm(std::int64_t channels, const DcGanOptions& options) {
  return {.channels = channels, .weight_initializer = options.norm_weight_initializer};
}

// The multiplications of a convolution that applies its matrix to `pixels` pixels. A linear layer applies its matrix once.
template <typename Convolution>
double cost_of(const Convolution& layer, std::int64_t pixels) {
  return static_cast<double>(layer.store().registered(layer.weight.number()).placement.shape.numel() * pixels);
}

}  // namespace detail

template <typename P, typename D>
MlpGenerator<P, D>::MlpGenerator(const MlpGanOptions& options, const ModelContext& context)
    : MlpGenerator::Staged(context),
      options_(detail::checked(options)),
      fc1_(*this, "fc1", {.in = options.latent, .out = options.hidden}),
      fc2_(*this, "fc2", {.in = options.hidden, .out = detail::numel_of_image(options)}) {
  const auto hidden = [this](const Tensor<M, D>& latent) {
    detail::require_latent(latent.shape(), options_);
    return leaky_relu(fc1_.forward(cast<T>(Variable<M, D>(latent))), options_.slope);
  };
  const auto images = [this](const Variable<T, D>& x) {
    return unflatten(tanh(fc2_.forward(x)), options_.image, options_.channels);
  };
  this->layers(this->layer({fc1_}, hidden), this->layer({fc2_}, images));
}

template <typename P, typename D>
MlpDiscriminator<P, D>::MlpDiscriminator(const MlpGanOptions& options, const ModelContext& context)
    : MlpDiscriminator::Staged(context),
      options_(detail::checked(options)),
      fc1_(*this, "fc1", {.in = detail::numel_of_image(options), .out = options.hidden}),
      fc2_(*this, "fc2", {.in = options.hidden, .out = 1}) {
  const auto hidden = [this](const Variable<T, D>& images) {
    detail::require_images(images.shape(), options_);
    return leaky_relu(fc1_.forward(flatten(images)), options_.slope);
  };
  this->layers(this->layer({fc1_}, hidden), fc2_);
}

template <typename P, typename D>
DcGenerator<P, D>::DcGenerator(const DcGanOptions& options, const ModelContext& context)
    : DcGenerator::Staged(context),
      options_(detail::checked(options)),
      ct1_(*this, "ct1",
           {.in = options.latent,
            .out = 2 * options.features,
            .kernel = detail::quarter(options.image),
            .bias = false,
            .weight_initializer = options.weight_initializer}),
      bn1_(*this, "bn1", detail::norm(2 * options.features, options)),
      ct2_(*this, "ct2", detail::doubling(2 * options.features, options.features, options)),
      bn2_(*this, "bn2", detail::norm(options.features, options)),
      ct3_(*this, "ct3", detail::doubling(options.features, options.channels, options)) {
  const auto quarter = [this](const Tensor<M, D>& latent) {
    detail::require_latent(latent.shape(), options_);
    const Variable<T, D> pixel = cast<T>(Variable<M, D>(latent.reshape({latent.dim(0), 1, 1, options_.latent})));
    return bn1_.forward_relu(ct1_.forward(pixel));
  };
  const auto half = [this](const Variable<T, D>& x) { return bn2_.forward_relu(ct2_.forward(x)); };
  const auto images = [this](const Variable<T, D>& x) { return tanh(ct3_.forward(x)); };
  const std::int64_t pixels = options.image.height * options.image.width;
  this->layers(this->layer({ct1_, bn1_}, quarter).costs(detail::cost_of(ct1_, 1)),
               this->layer({ct2_, bn2_}, half).costs(detail::cost_of(ct2_, pixels / 16)),
               this->layer({ct3_}, images).costs(detail::cost_of(ct3_, pixels / 4)));
}

template <typename P, typename D>
DcDiscriminator<P, D>::DcDiscriminator(const DcGanOptions& options, const ModelContext& context)
    : DcDiscriminator::Staged(context),
      options_(detail::checked(options)),
      conv1_(*this, "conv1", detail::halving(options.channels, options.features, true, options)),
      conv2_(*this, "conv2", detail::halving(options.features, 2 * options.features, false, options)),
      bn2_(*this, "bn2", detail::norm(2 * options.features, options)),
      fc_(*this, "fc",
          {.in = 2 * options.features * detail::quarter(options.image).height * detail::quarter(options.image).width,
           .out = 1,
           .weight_initializer = options.weight_initializer}) {
  const auto half = [this](const Variable<T, D>& images) {
    detail::require_images(images.shape(), options_);
    return leaky_relu(conv1_.forward(images), options_.slope);
  };
  const auto quarter = [this](const Variable<T, D>& x) { return leaky_relu(bn2_.forward(conv2_.forward(x)), options_.slope); };
  const auto logits = [this](const Variable<T, D>& x) { return fc_.forward(flatten(x)); };
  const std::int64_t pixels = options.image.height * options.image.width;
  this->layers(this->layer({conv1_}, half).costs(detail::cost_of(conv1_, pixels / 4)),
               this->layer({conv2_, bn2_}, quarter).costs(detail::cost_of(conv2_, pixels / 16)), this->layer({fc_}, logits));
}

}  // namespace models
}  // namespace trireme
