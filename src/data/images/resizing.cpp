#include "data/images/resizing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/images/decode_picture.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/bad_samples.hpp"

namespace trireme::data {

void check(const Resizing& resizing, std::int64_t height, std::int64_t width, std::int64_t channels) {
  require(height > 0 && width > 0 && width <= most_pixels / height,
          "images of {} x {} pixels: set .height and .width to the extents of all images", height, width);
  const auto& [resized_height, resized_width, shorter, resampling] = resizing;
  const bool fits = shorter > 0
                        ? shorter >= height && shorter >= width
                        : (resized_height == 0 || resized_height >= height) && (resized_width == 0 || resized_width >= width);
  const bool exist = std::min({resized_height, resized_width, shorter}) >= 0 &&
                     std::max({resized_height, resized_width, shorter}) <= most_pixels;
  require(fits && exist,
          "resized to {} x {} pixels, or to {} on the shorter side, images are too small for a centre crop of {} x {}",
          resized_height, resized_width, shorter, height, width);
  require(channels == 1 || channels == 3, "images have 1 channel or 3, got {}", channels);
}

ImageShape resized_shape(const ImageShape& shape, const Resizing& resizing, std::int64_t height, std::int64_t width,
                         const Location& path) {
  ImageShape result{.height = resizing.height > 0 ? resizing.height : height,
                    .width = resizing.width > 0 ? resizing.width : width,
                    .channels = shape.channels};
  if (resizing.shorter > 0) {
    const std::int64_t side = std::min(shape.height, shape.width);
    result.height = resizing.shorter * shape.height / side;
    result.width = resizing.shorter * shape.width / side;
  }
  if (result.width <= most_pixels / result.height) return result;
  throw BadSample({.message = fmt::format("the image would be resized to {} x {} pixels", result.height, result.width),
                   .path = path.string(),
                   .hint = "remove it"});
}

}  // namespace trireme::data
