#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/images/image_dataset.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// One picture of 8 bits a channel.
struct Picture {
  ImageShape shape;                  // channels: 1 for grey, 3 for red, green and blue
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
};

struct ImageGridOptions {
  std::int64_t columns = 8;
  std::int64_t padding = 2;  // pixels between the images and around them, black
  float low = 0;             // the value that becomes black
  float high = 1;            // the value that becomes white; values outside of [low, high] are clamped
};

// images[count, height, width, channels] side by side, row after row, as torchvision's make_grid and save_image lay them out: a
// single image stays without padding, fewer images than columns make a narrower picture.
Picture image_grid(const Tensor<float>& images, const ImageGridOptions& options = {});

// Writes a PNG file; `path` holds either its old content or the whole picture. Throws Error{io}, and Error{not_available} in a
// build without libpng.
void write_png(const Location& path, const Picture& picture);

}  // namespace data
}  // namespace trireme
