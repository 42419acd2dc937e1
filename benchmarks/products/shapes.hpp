#pragma once

#include <cstdint>
#include <string>
#include <vector>

// A step's pass through a layer: its result, the gradient of its input, the gradient of its weight.
enum class LayerPass { forward, data, weight };
std::string name_of(LayerPass pass);

using LayerPasses = std::vector<LayerPass>;
inline const LayerPasses all_passes{LayerPass::forward, LayerPass::data, LayerPass::weight};
inline const LayerPasses of_first_layer{LayerPass::forward, LayerPass::weight};  // the input of a model has no gradient

// y[rows, out] = x[rows, in] weight[out, in]^T, as often as a step has it.
struct LinearLayer {
  std::int64_t rows;
  std::int64_t in;
  std::int64_t out;
  int times = 1;
  LayerPasses passes = all_passes;

  std::string name() const;
  double operations() const { return 2.0 * static_cast<double>(rows * in * out); }  // in each pass
};

// A convolution of square images, channels last, as often as a step has it.
struct ConvolutionLayer {
  std::int64_t batch;
  std::int64_t side;  // of the images that it reads
  std::int64_t in;    // channels
  std::int64_t out;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t groups = 1;
  int times = 1;
  LayerPasses passes = all_passes;

  std::string name() const;
  std::int64_t padding() const { return kernel == stride ? 0 : kernel / 2; }  // patches have none
  std::int64_t out_side() const { return (side - 1) / stride + 1; }
  double operations() const {  // of each pass
    return 2.0 * static_cast<double>(batch * out_side() * out_side() * out * (in / groups) * kernel * kernel);
  }
};

// The layers of a model that multiply matrices or convolve; each shape once.
struct ModelShapes {
  std::vector<LinearLayer> linear = {};
  std::vector<ConvolutionLayer> convolutions = {};
};

// gpt-10m, gpt-124m, vit-b, lstm, resnet-18 (images of 32 x 32), resnet-50, resnext-50, mobilenet-v2, convnext-t (of
// 224 x 224).
std::vector<std::string> model_names();
ModelShapes shapes_of(const std::string& model, std::int64_t batch);
