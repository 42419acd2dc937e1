#pragma once

#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/pooling.hpp"
#include "trireme/core/export.hpp"
#include "trireme/models/architectures/classification_loss.hpp"
#include "trireme/models/architectures/cnn.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

inline CnnOptions checked(const CnnOptions& options) {
  require(options.image.height >= 4 && options.image.width >= 4, "a Cnn needs images of 4 x 4 pixels or more, got {} x {}",
          options.image.height, options.image.width);
  require(options.channels > 0 && options.first > 0 && options.second > 0 && options.hidden > 0 && options.classes > 1,
          "a Cnn needs channels, first, second and hidden above 0 and classes above 1, got {}, {}, {}, {} and {}",
          options.channels, options.first, options.second, options.hidden, options.classes);
  return options;
}

// Makes the layer inside the optional, because layers can't be moved and are registered in the order of the forward pass.
template <typename P, typename D>
std::optional<nn::BatchNorm2d<P, D>> batch_norm_after(const nn::Module<P, D>& parent, std::string_view name,
                                                      const CnnOptions& options, std::int64_t channels) {
  using Norm = std::optional<nn::BatchNorm2d<P, D>>;
  if (!options.batch_norm) return Norm();
  return Norm(std::in_place, parent, name, nn::BatchNormOptions{.channels = channels});
}

}  // namespace detail

template <typename P, typename D>
Cnn<P, D>::Cnn(const CnnOptions& options, const ModelContext& context)
    : Cnn::Staged(context),
      options_(detail::checked(options)),
      conv1_(*this, "conv1", {.in = options.channels, .out = options.first, .kernel = 3, .padding = 1}),
      bn1_(detail::batch_norm_after(*this, "bn1", options, options.first)),
      conv2_(*this, "conv2", {.in = options.first, .out = options.second, .kernel = 3, .padding = 1}),
      bn2_(detail::batch_norm_after(*this, "bn2", options, options.second)),
      fc1_(*this, "fc1",
           {.in = options.second * (options.image.height / 4) * (options.image.width / 4), .out = options.hidden}),
      dropout_(*this, "dropout", options.dropout),
      fc2_(*this, "fc2", {.in = options.hidden, .out = options.classes}) {
  const auto read = [this](const Batch& batch) {
    const Shape& shape = batch.images.shape();
    require(shape.size() == 4 && shape[1] == options_.image.height && shape[2] == options_.image.width &&
                shape[3] == options_.channels,
            "this Cnn reads images [batch, {}, {}, {}], got {}", options_.image.height, options_.image.width, options_.channels,
            shape);
    return cast<T>(Variable<M, D>(batch.images));
  };
  // Costs are numbers of multiplications; for a linear layer, this is the number of elements of its matrix.
  const auto convolution = [this](const nn::Conv2d<P, D>& conv, const std::optional<nn::BatchNorm2d<P, D>>& norm,
                                  std::int64_t pixels) {
    const auto forward = [&conv, &norm](const Variable<T, D>& x) {
      const Variable<T, D> y = conv.forward(x);
      return max_pool2d(norm ? norm->forward_relu(y) : relu(y), {.kernel = 2});
    };
    const std::int64_t elements = this->store().registered(conv.weight.number()).placement.shape.numel();
    const auto layer = norm ? this->layer({conv, *norm}, forward) : this->layer({conv}, forward);
    return layer.costs(static_cast<double>(elements * pixels));
  };
  const auto hidden = [this](const Variable<T, D>& x) { return dropout_.forward(relu(fc1_.forward(flatten(x)))); };
  const auto& [height, width] = options_.image;
  this->layers(nn::chain(this->layer({}, read), convolution(conv1_, bn1_, height * width)),
               convolution(conv2_, bn2_, (height / 2) * (width / 2)), this->layer({fc1_, dropout_}, hidden), fc2_);
}

template <typename P, typename D>
Loss<typename P::Master, D> Cnn<P, D>::loss(const Variable<T, D>& logits, const Batch& batch) const {
  return classification_loss(logits, batch);
}

}  // namespace models
}  // namespace trireme
