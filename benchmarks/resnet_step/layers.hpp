#pragma once

#include <cstdint>
#include <vector>

// A convolution without bias of a ResNet-18, and the batch norm after it.
struct Layer {
  std::int64_t in;  // channels
  std::int64_t out;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t side;  // of the images that it reads
  bool relu;
  bool residual;

  std::int64_t padding() const { return kernel / 2; }
  std::int64_t out_side() const { return side / stride; }
  // Of one pass over a batch.
  double operations(std::int64_t batch) const {
    return 2.0 * static_cast<double>(batch * out_side() * out_side() * out * in * kernel * kernel);
  }
};

// In the order of the forward pass; images have 32 x 32 pixels and 3 channels.
std::vector<Layer> resnet18_layers();
