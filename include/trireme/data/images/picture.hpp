#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// An image with 8 bits per channel.
struct Picture {
  ImageShape shape;                  // 1 channel: grey; 3 channels: red, green, blue
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
};

struct ImageGridOptions {
  std::int64_t columns = 8;
  std::int64_t padding = 2;  // black pixels between and around the images
  float low = 0;             // the value that becomes black
  float high = 1;            // the value that becomes white; values outside of [low, high] are clamped
};

// Arranges images [count, height, width, channels] in a grid, row by row, as torchvision's make_grid and save_image do. A
// single image gets no padding, and fewer images than columns give a narrower grid.
Picture image_grid(const Tensor<float>& images, const ImageGridOptions& options = {});

// Writes a PNG file, atomically: after a failure `path` still has its old content. Throws Error{io}, and Error{not_available}
// in a build without libpng.
void write_png(const Location& path, const Picture& picture);

}  // namespace data
}  // namespace trireme
