#include "trireme/data/images/picture.hpp"

#include <algorithm>

#include "data/images/png.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

std::uint8_t byte_of(float value, const ImageGridOptions& options) {
  const float scaled = (value - options.low) / (options.high - options.low) * 255 + 0.5f;
  return static_cast<std::uint8_t>(std::min(std::max(0.0f, scaled), 255.0f));  // NaN becomes 0
}

}  // namespace

Picture image_grid(const Tensor<float>& images, const ImageGridOptions& options) {
  require(images.defined() && images.shape().size() == 4 && images.numel() > 0,
          "a grid is made of images[count, height, width, channels], got the shape {}", images.shape());
  require(options.columns > 0 && options.padding >= 0, "a grid of {} columns and a padding of {} pixels does not exist",
          options.columns, options.padding);
  require(options.low < options.high, "the range of a grid's values, [{}, {}], is empty: .low must be below .high", options.low,
          options.high);
  const std::int64_t count = images.dim(0);
  const ImageShape image{.height = images.dim(1), .width = images.dim(2), .channels = images.dim(3)};
  const std::int64_t columns = std::min(options.columns, count);
  const std::int64_t rows = (count + columns - 1) / columns;
  const std::int64_t padding = count == 1 ? 0 : options.padding;
  Picture grid{.shape = {.height = rows * (image.height + padding) + padding,
                         .width = columns * (image.width + padding) + padding,
                         .channels = image.channels},
               .pixels = {}};
  grid.pixels.resize(static_cast<std::size_t>(grid.shape.numel()));
  const float* from = images.data();
  for (std::int64_t index = 0; index < count; ++index) {
    const std::int64_t top = padding + index / columns * (image.height + padding);
    const std::int64_t left = padding + index % columns * (image.width + padding);
    for (std::int64_t y = 0; y < image.height; ++y, from += image.width * image.channels) {
      std::uint8_t* to = grid.pixels.data() + ((top + y) * grid.shape.width + left) * image.channels;
      std::transform(from, from + image.width * image.channels, to, [&](float value) { return byte_of(value, options); });
    }
  }
  return grid;
}

void write_png(const Location& path, const Picture& picture) {
  const ImageShape& shape = picture.shape;
  require(shape.channels == 1 || shape.channels == 3, "a picture has 1 channel or 3, got {}", shape.channels);
  require(shape.height > 0 && shape.width > 0 && std::ssize(picture.pixels) == shape.numel(),
          "{} bytes are no picture of {} x {} pixels and {} channels", picture.pixels.size(), shape.height, shape.width,
          shape.channels);
  const std::vector<std::uint8_t> bytes = png_of(picture, path);
  FileReplacement file(path);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

}  // namespace trireme::data
