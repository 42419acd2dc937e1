#include "trireme/data/images/read_image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "data/images/decode_picture.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/bad_samples.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

// Reduces three equal channels to one. Throws Error where they differ.
Picture single_channel(Picture picture, const Location& path) {
  if (picture.shape.channels == 1) return picture;
  Picture single{.shape = picture.shape, .pixels = {}};
  single.shape.channels = 1;
  for (std::size_t i = 0; i < picture.pixels.size(); i += 3) {
    const std::uint8_t* pixel = picture.pixels.data() + i;
    if (pixel[0] != pixel[1] || pixel[0] != pixel[2]) {
      throw BadSample(
          {.message = fmt::format("the image has colours, not numbers: a pixel is ({}, {}, {})", pixel[0], pixel[1], pixel[2]),
           .path = path.string(),
           .hint = "save it with a palette, or with the class numbers as grey values"});
    }
    single.pixels.push_back(pixel[0]);
  }
  return single;
}

void check(const ImageOptions& options) {
  const auto& [height, width, channels, resampling, numbers] = options;
  require(height >= 0 && width >= 0 && (width == 0 || height <= most_pixels / width),
          "an image can't be resized to {} x {} pixels", height, width);
  require(channels == 0 || channels == 1 || channels == 3, "images have 1 channel or 3, got {}", channels);
  require(!numbers || channels < 3, "with .numbers an image has one channel, not {}", channels);
  require(!numbers || (height == 0 && width == 0) || resampling == Resampling::nearest,
          "class numbers can't be blended: with .numbers set .resampling = data::Resampling::nearest");
}

}  // namespace

Picture read_image(const Location& path, const ImageOptions& options) {
  check(options);
  const auto file = open_file(path);
  std::vector<std::uint8_t> bytes(file->size());
  file->read_at(std::as_writable_bytes(std::span(bytes)), 0);
  Picture picture = decode_picture(bytes, path, options.numbers);
  if (options.numbers) picture = single_channel(std::move(picture), path);
  if (options.channels > 0) picture = with_channels(std::move(picture), options.channels);
  const std::int64_t height = options.height > 0 ? options.height : picture.shape.height;
  const std::int64_t width = options.width > 0 ? options.width : picture.shape.width;
  if (width > most_pixels / height) {
    throw BadSample({.message = fmt::format("the image would be resized to {} x {} pixels", height, width),
                     .path = path.string(),
                     .hint = "set both extents"});
  }
  return resized(std::move(picture), height, width, options.resampling);
}

}  // namespace trireme::data
