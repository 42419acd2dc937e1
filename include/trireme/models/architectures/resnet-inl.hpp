#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/pooling.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/core/export.hpp"
#include "trireme/models/architectures/classification_loss.hpp"
#include "trireme/models/architectures/resnet.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

inline ResNetOptions checked(const ResNetOptions& options) {
  require(!options.widths.empty() && options.widths.size() == options.blocks.size(),
          "a ResNet needs as many widths as blocks, at least one, got {} and {}", options.widths.size(), options.blocks.size());
  require(std::ranges::all_of(options.widths, [](std::int64_t width) { return width > 0; }) &&
              std::ranges::all_of(options.blocks, [](int blocks) { return blocks > 0; }),
          "the widths and blocks of a ResNet's layers are above 0");
  require(options.channels > 0 && options.classes > 1, "a ResNet needs channels above 0 and classes above 1, got {} and {}",
          options.channels, options.classes);
  return options;
}

// Initialized by fan-out (He et al. 2015, arXiv 1502.01852).
inline nn::Conv2dOptions convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  const auto fan_out = static_cast<double>(out * kernel * kernel);
  return {.in = in,
          .out = out,
          .kernel = kernel,
          .stride = stride,
          .padding = kernel / 2,
          .bias = false,
          .weight_initializer = Initializer::normal(0, std::sqrt(2 / fan_out))};
}

inline nn::Conv2dOptions stem(const ResNetOptions& options) {
  return options.stem == ResNetOptions::Stem::cifar ? convolution(options.channels, options.widths.front(), 3)
                                                    : convolution(options.channels, options.widths.front(), 7, 2);
}

// The cost of a convolution: its multiplications for each pixel of the network's images. pixels: how many pixels the
// convolution reads for each pixel of these images.
inline double multiplications(const nn::Conv2dOptions& options, double pixels) {
  return static_cast<double>(options.in * options.out * options.kernel.height * options.kernel.width) * pixels /
         static_cast<double>(options.stride.height * options.stride.width);
}

struct ResNetBlockOptions {
  std::vector<nn::Conv2dOptions> convolutions;
  double pixels = 1;  // pixels that the block reads for each pixel of the network's images
};

// All blocks with their names.
inline std::vector<std::pair<std::string, ResNetBlockOptions>> blocks_of(const ResNetOptions& options) {
  std::vector<std::pair<std::string, ResNetBlockOptions>> blocks;
  std::int64_t in = options.widths.front();
  double pixels = options.stem == ResNetOptions::Stem::cifar ? 1 : 1.0 / 16;
  for (std::size_t number = 0; number < options.widths.size(); ++number) {
    const std::int64_t width = options.widths[number];
    for (int index = 0; index < options.blocks[number]; ++index) {
      const std::int64_t stride = number > 0 && index == 0 ? 2 : 1;
      const std::vector<nn::Conv2dOptions> convolutions =
          options.block == ResNetOptions::Block::basic
              ? std::vector{convolution(in, width, 3, stride), convolution(width, width, 3)}
              : std::vector{convolution(in, width, 1), convolution(width, width, 3, stride), convolution(width, 4 * width, 1)};
      blocks.push_back({fmt::format("layer{}.{}", number + 1, index), {.convolutions = convolutions, .pixels = pixels}});
      in = convolutions.back().out;
      pixels /= static_cast<double>(stride * stride);
    }
  }
  return blocks;
}

}  // namespace detail

template <typename P, typename D>
struct ResNet<P, D>::Downsample : nn::Module<P, D> {
  Downsample(const nn::Module<P, D>& parent, std::string_view name, const nn::Conv2dOptions& options)
      : nn::Module<P, D>(parent, name), conv(*this, "0", options), norm(*this, "1", {.channels = options.out}) {}

  Variable<T, D> forward(const Variable<T, D>& x) const { return norm.forward(conv.forward(x)); }

  nn::Conv2d<P, D> conv;
  nn::BatchNorm2d<P, D> norm;
};

template <typename P, typename D>
struct ResNet<P, D>::Block : nn::Module<P, D> {
  struct Convolution {
    nn::Conv2d<P, D> conv;
    nn::BatchNorm2d<P, D> norm;
  };

  Block(const nn::Module<P, D>& parent, std::string_view name, const detail::ResNetBlockOptions& options)
      : nn::Module<P, D>(parent, name) {
    double pixels = options.pixels;
    std::int64_t stride = 1;
    for (const nn::Conv2dOptions& convolution : options.convolutions) {
      const std::size_t number = path.size() + 1;
      path.push_back(std::unique_ptr<Convolution>(
          new Convolution{.conv = {*this, fmt::format("conv{}", number), convolution},
                          .norm = {*this, fmt::format("bn{}", number), {.channels = convolution.out}}}));
      multiplications += detail::multiplications(convolution, pixels);
      stride *= convolution.stride.height;
      pixels /= static_cast<double>(convolution.stride.height * convolution.stride.width);
    }
    const std::int64_t in = options.convolutions.front().in;
    const std::int64_t out = options.convolutions.back().out;
    if (stride == 1 && in == out) return;
    const nn::Conv2dOptions shortcut = detail::convolution(in, out, 1, stride);
    downsample.emplace(*this, "downsample", shortcut);
    multiplications += detail::multiplications(shortcut, options.pixels);
  }

  Variable<T, D> forward(const Variable<T, D>& x) const {
    Variable<T, D> y = x;
    for (std::size_t index = 0; index + 1 < path.size(); ++index) {
      y = path[index]->norm.forward_relu(path[index]->conv.forward(y));
    }
    y = path.back()->conv.forward(y);
    return path.back()->norm.forward_add_relu(y, downsample ? downsample->forward(x) : x);
  }

  double cost() const { return multiplications; }

  std::vector<std::unique_ptr<Convolution>> path;
  std::optional<Downsample> downsample;
  double multiplications = 0;
};

template <typename P, typename D>
ResNet<P, D>::ResNet(const ResNetOptions& options, const ModelContext& context)
    : ResNet::Staged(context),
      options_(detail::checked(options)),
      conv1_(*this, "conv1", detail::stem(options)),
      bn1_(*this, "bn1", {.channels = options.widths.front()}),
      blocks_(*this, detail::blocks_of(options)),
      fc_(*this, "fc",
          {.in = options.widths.back() * (options.block == ResNetOptions::Block::basic ? 1 : 4), .out = options.classes}) {
  const auto stem = [this](const Batch& batch) {
    const Shape& shape = batch.images.shape();
    require(shape.size() == 4 && shape[3] == options_.channels, "this ResNet reads images [batch, height, width, {}], got {}",
            options_.channels, shape);
    const Variable<T, D> y = bn1_.forward_relu(conv1_.forward(cast<T>(Variable<M, D>(batch.images))));
    return options_.stem == ResNetOptions::Stem::imagenet ? max_pool2d(y, {.kernel = 3, .stride = 2, .padding = 1}) : y;
  };
  const auto head = [this](const Variable<T, D>& x) {
    return fc_.forward(reshape(adaptive_avg_pool2d(x, 1), {x.shape()[0], x.shape()[3]}));
  };
  this->layers(this->layer({conv1_, bn1_}, stem).costs(detail::multiplications(detail::stem(options), 1)), blocks_,
               this->layer({fc_}, head).costs(0));  // negligible: the head reads one pixel of each image
}

template <typename P, typename D>
ResNet<P, D>::~ResNet() = default;

template <typename P, typename D>
Loss<typename P::Master, D> ResNet<P, D>::loss(const Variable<T, D>& logits, const Batch& batch) const {
  return classification_loss(logits, batch);
}

}  // namespace models
}  // namespace trireme
