#include "products/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace {

struct TransformerSizes {
  std::int64_t tokens;  // of a sequence
  std::int64_t width;
  int layers;
  std::int64_t results;  // of the last layer
};

// The linear layers; attention multiplies inside its own kernel.
ModelShapes transformer(const TransformerSizes& sizes, std::int64_t batch) {
  const std::int64_t rows = batch * sizes.tokens;
  const std::int64_t width = sizes.width;
  return {.linear = {{rows, width, 3 * width, sizes.layers},
                     {rows, width, width, sizes.layers},
                     {rows, width, 4 * width, sizes.layers},
                     {rows, 4 * width, width, sizes.layers},
                     {rows, width, sizes.results}}};
}

// 12 layers of width 768, a classifier on the first of 197 tokens, patches of 16 x 16 pixels (Dosovitskiy et al. 2020, arXiv
// 2010.11929).
ModelShapes vit_b(std::int64_t batch) {
  ModelShapes shapes = transformer({.tokens = 197, .width = 768, .layers = 12, .results = 1000}, batch);
  shapes.linear.back().rows = batch;
  shapes.linear.push_back({batch * 196, 16 * 16 * 3, 768, 1, of_first_layer});
  return shapes;
}

// 64 steps of two layers. The input has one product for all steps, the state one for each step; its weight's gradient has one.
ModelShapes lstm(std::int64_t batch) {
  constexpr std::int64_t hidden = 512;
  constexpr int steps = 64;
  const LayerPasses not_of_weight{LayerPass::forward, LayerPass::data};
  return {.linear = {{steps * batch, hidden, 4 * hidden, 2, not_of_weight},
                     {batch, hidden, 4 * hidden, 2 * steps, not_of_weight},
                     {steps * batch, hidden, 4 * hidden, 4, {LayerPass::weight}}}};
}

class Convolutions {
 public:
  explicit Convolutions(std::int64_t batch, std::int64_t side) : batch_(batch), side_(side) {}

  void add(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1) {
    const ConvolutionLayer layer{.batch = batch_,
                                 .side = side_,
                                 .in = in,
                                 .out = out,
                                 .kernel = kernel,
                                 .stride = stride,
                                 .groups = groups,
                                 .passes = layers_.empty() ? of_first_layer : all_passes};
    const auto known = std::ranges::find(layers_, layer.name(), &ConvolutionLayer::name);
    if (known != layers_.end()) {
      ++known->times;
    } else {
      layers_.push_back(layer);
    }
  }
  void shrink(std::int64_t stride) { side_ = (side_ - 1) / stride + 1; }
  std::int64_t pixels() const { return batch_ * side_ * side_; }
  ModelShapes shapes() const { return {.convolutions = layers_}; }

 private:
  std::int64_t batch_;
  std::int64_t side_;
  std::vector<ConvolutionLayer> layers_;
};

// He et al. 2016, arXiv 1512.03385.
ModelShapes resnet_18(std::int64_t batch) {
  Convolutions convolutions(batch, 32);
  convolutions.add(3, 64, 3);
  std::int64_t in = 64;
  for (const std::int64_t width : {64, 128, 256, 512}) {
    for (const bool first : {true, false}) {
      const std::int64_t stride = first && width > 64 ? 2 : 1;
      convolutions.add(in, width, 3, stride);
      if (stride > 1) convolutions.add(in, width, 1, stride);
      convolutions.shrink(stride);
      convolutions.add(width, width, 3);
      in = width;
    }
  }
  return convolutions.shapes();
}

// Bottlenecks with the stride in the 3 x 3 convolution, as in torchvision; `width` is the width for 64 channels.
ModelShapes bottlenecks(std::int64_t batch, std::int64_t width_of_64, std::int64_t groups) {
  Convolutions convolutions(batch, 224);
  convolutions.add(3, 64, 7, 2);
  convolutions.shrink(4);  // max pooling after it
  std::int64_t in = 64;
  for (const auto& [channels, blocks] : {std::pair<std::int64_t, int>{64, 3}, {128, 4}, {256, 6}, {512, 3}}) {
    const std::int64_t width = channels / 64 * width_of_64;
    for (int block = 0; block < blocks; ++block) {
      const std::int64_t stride = block == 0 && channels > 64 ? 2 : 1;
      convolutions.add(in, width, 1);
      convolutions.add(width, width, 3, stride, groups);
      if (block == 0) convolutions.add(in, 4 * channels, 1, stride);
      convolutions.shrink(stride);
      convolutions.add(width, 4 * channels, 1);
      in = 4 * channels;
    }
  }
  return convolutions.shapes();
}

ModelShapes resnet_50(std::int64_t batch) { return bottlenecks(batch, 64, 1); }

// 32 groups of 4 channels (Xie et al. 2017, arXiv 1611.05431).
ModelShapes resnext_50(std::int64_t batch) { return bottlenecks(batch, 128, 32); }

// Sandler et al. 2018, arXiv 1801.04381.
ModelShapes mobilenet_v2(std::int64_t batch) {
  struct Stage {
    std::int64_t expansion, out;
    int blocks;
    std::int64_t stride;
  };
  Convolutions convolutions(batch, 224);
  convolutions.add(3, 32, 3, 2);
  convolutions.shrink(2);
  std::int64_t in = 32;
  for (const Stage& stage :
       {Stage{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}) {
    for (int block = 0; block < stage.blocks; ++block) {
      const std::int64_t width = in * stage.expansion;
      const std::int64_t stride = block == 0 ? stage.stride : 1;
      if (stage.expansion > 1) convolutions.add(in, width, 1);
      convolutions.add(width, width, 3, stride, width);
      convolutions.shrink(stride);
      convolutions.add(width, stage.out, 1);
      in = stage.out;
    }
  }
  convolutions.add(in, 1280, 1);
  return convolutions.shapes();
}

// Liu et al. 2022, arXiv 2201.03545.
ModelShapes convnext_t(std::int64_t batch) {
  Convolutions convolutions(batch, 224);
  std::vector<LinearLayer> linear;
  std::int64_t in = 3;
  for (const auto& [width, blocks] : {std::pair<std::int64_t, int>{96, 3}, {192, 3}, {384, 9}, {768, 3}}) {
    const std::int64_t patch = in == 3 ? 4 : 2;
    convolutions.add(in, width, patch, patch);
    convolutions.shrink(patch);
    for (int block = 0; block < blocks; ++block) convolutions.add(width, width, 7, 1, width);
    linear.push_back({convolutions.pixels(), width, 4 * width, blocks});
    linear.push_back({convolutions.pixels(), 4 * width, width, blocks});
    in = width;
  }
  ModelShapes shapes = convolutions.shapes();
  shapes.linear = linear;
  return shapes;
}

const std::map<std::string, std::function<ModelShapes(std::int64_t)>>& models() {
  static const std::map<std::string, std::function<ModelShapes(std::int64_t)>> all{
      {"gpt-10m",
       [](std::int64_t batch) { return transformer({.tokens = 256, .width = 384, .layers = 6, .results = 256}, batch); }},
      {"gpt-124m",
       [](std::int64_t batch) { return transformer({.tokens = 1024, .width = 768, .layers = 12, .results = 50257}, batch); }},
      {"vit-b", vit_b},
      {"lstm", lstm},
      {"resnet-18", resnet_18},
      {"resnet-50", resnet_50},
      {"resnext-50", resnext_50},
      {"mobilenet-v2", mobilenet_v2},
      {"convnext-t", convnext_t}};
  return all;
}

}  // namespace

std::string name_of(LayerPass pass) {
  return pass == LayerPass::forward ? "forward" : pass == LayerPass::data ? "data" : "weight";
}

std::string LinearLayer::name() const { return fmt::format("[{}, {}] to {}", rows, in, out); }

std::string ConvolutionLayer::name() const {
  const std::string of_groups = groups == 1 ? "" : fmt::format(", {} groups", groups);
  return fmt::format("{0}x{1}x{1}x{2} to {3}, {4}x{4} / {5}{6}", batch, side, in, out, kernel, stride, of_groups);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& [name, shapes] : models()) names.push_back(name);
  return names;
}

ModelShapes shapes_of(const std::string& model, std::int64_t batch) { return models().at(model)(batch); }
