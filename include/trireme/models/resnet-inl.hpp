#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "trireme/autograd/images.hpp"
#include "trireme/models/resnet.hpp"

namespace trireme::models {
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

// He et al. 2015 (arXiv 1502.01852), for what leaves the layer.
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

  Block(const nn::Module<P, D>& parent, std::string_view name, const std::vector<nn::Conv2dOptions>& convolutions)
      : nn::Module<P, D>(parent, name) {
    std::int64_t stride = 1;
    for (const nn::Conv2dOptions& options : convolutions) {
      const std::size_t number = path.size() + 1;
      path.push_back(std::unique_ptr<Convolution>(
          new Convolution{.conv = {*this, fmt::format("conv{}", number), options},
                          .norm = {*this, fmt::format("bn{}", number), {.channels = options.out}}}));
      stride *= options.stride.height;
    }
    const std::int64_t in = convolutions.front().in;
    const std::int64_t out = convolutions.back().out;
    if (stride != 1 || in != out) downsample.emplace(*this, "downsample", detail::convolution(in, out, 1, stride));
  }

  Variable<T, D> forward(const Variable<T, D>& x) const {
    Variable<T, D> y = x;
    for (std::size_t index = 0; index + 1 < path.size(); ++index) {
      y = path[index]->norm.forward_relu(path[index]->conv.forward(y));
    }
    y = path.back()->conv.forward(y);
    return path.back()->norm.forward_add_relu(y, downsample ? downsample->forward(x) : x);
  }

  std::vector<std::unique_ptr<Convolution>> path;
  std::optional<Downsample> downsample;
};

template <typename P, typename D>
ResNet<P, D>::ResNet(const ResNetOptions& options, const ModelContext& context)
    : nn::Module<P, D>(one_stage(context, "ResNet")),
      options_(detail::checked(options)),
      conv1_(*this, "conv1",
             options.stem == ResNetOptions::Stem::cifar ? detail::convolution(options.channels, options.widths.front(), 3)
                                                        : detail::convolution(options.channels, options.widths.front(), 7, 2)),
      bn1_(*this, "bn1", {.channels = options.widths.front()}),
      blocks_([&] {
        std::vector<std::unique_ptr<Block>> blocks;
        std::int64_t in = options.widths.front();
        for (std::size_t number = 0; number < options.widths.size(); ++number) {
          const std::int64_t width = options.widths[number];
          for (int index = 0; index < options.blocks[number]; ++index) {
            const std::int64_t stride = number > 0 && index == 0 ? 2 : 1;
            const std::vector<nn::Conv2dOptions> convolutions =
                options.block == ResNetOptions::Block::basic
                    ? std::vector{detail::convolution(in, width, 3, stride), detail::convolution(width, width, 3)}
                    : std::vector{detail::convolution(in, width, 1), detail::convolution(width, width, 3, stride),
                                  detail::convolution(width, 4 * width, 1)};
            blocks.push_back(std::make_unique<Block>(*this, fmt::format("layer{}.{}", number + 1, index), convolutions));
            in = convolutions.back().out;
          }
        }
        return blocks;
      }()),
      fc_(*this, "fc",
          {.in = options.widths.back() * (options.block == ResNetOptions::Block::basic ? 1 : 4), .out = options.classes}) {}

template <typename P, typename D>
ResNet<P, D>::~ResNet() = default;

template <typename P, typename D>
Variable<typename P::Compute, D> ResNet<P, D>::logits(const Tensor<M, D>& images) const {
  const Shape& shape = images.shape();
  require(shape.size() == 4 && shape[3] == options_.channels, "this ResNet reads images [batch, height, width, {}], got {}",
          options_.channels, shape);
  Variable<T, D> y = bn1_.forward_relu(conv1_.forward(cast<T>(Variable<M, D>(images))));
  if (options_.stem == ResNetOptions::Stem::imagenet) y = max_pool2d(y, {.kernel = 3, .stride = 2, .padding = 1});
  for (const auto& block : blocks_) y = block->forward(y);
  return fc_.forward(reshape(adaptive_avg_pool2d(y, 1), {shape[0], y.shape()[3]}));
}

template <typename P, typename D>
Loss<typename P::Master, D> ResNet<P, D>::loss(const Tensor<M, D>& images, const Tensor<std::int32_t, D>& labels) const {
  return cross_entropy(logits(images), labels);
}

}  // namespace trireme::models
