#include "layers.hpp"

std::vector<Layer> resnet18_layers() {
  std::vector<Layer> layers{{.in = 3, .out = 64, .kernel = 3, .stride = 1, .side = 32, .relu = true, .residual = false}};
  for (const std::int64_t width : {64, 128, 256, 512}) {
    for (const bool first : {true, false}) {
      const Layer& before = layers.back();
      const std::int64_t stride = first && width > 64 ? 2 : 1;
      const std::int64_t side = before.out_side();
      const std::int64_t in = before.out;
      layers.push_back({.in = in, .out = width, .kernel = 3, .stride = stride, .side = side, .relu = true, .residual = false});
      if (stride > 1) {
        layers.push_back(
            {.in = in, .out = width, .kernel = 1, .stride = stride, .side = side, .relu = false, .residual = false});
      }
      layers.push_back(
          {.in = width, .out = width, .kernel = 3, .stride = 1, .side = side / stride, .relu = true, .residual = true});
    }
  }
  return layers;
}
