#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/data/images/picture.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

enum class Resampling : std::uint8_t {
  nearest,   // takes one pixel: for masks, because a mean of class numbers makes no sense
  bilinear,  // weighted mean; when downsampling, over all pixels that an output pixel replaces
  bicubic,
};

// How an image is resized before its centre is taken.
struct Resizing {
  std::int64_t height = 0;  // pixels of the resized image, whatever its proportions; 0: as many as the crop takes
  std::int64_t width = 0;
  std::int64_t shorter = 0;  // above 0: pixels of the shorter side, instead of height and width; proportions stay
  Resampling resampling = Resampling::bilinear;
};

struct ImageOptions {
  std::int64_t height = 0;  // pixels of the result; 0: as in the file
  std::int64_t width = 0;
  std::int64_t channels = 0;  // 3: red, green, blue; 1: grey; 0: as in the file
  Resampling resampling = Resampling::bilinear;

  // For masks: returns the stored numbers in one channel. These are palette indices, or grey values, which stay below 16 if
  // they have 1, 2 or 4 bits. Throws Error for a colour image, unless its three channels are equal.
  bool numbers = false;
};

// Reads a PNG, JPEG or WebP file:
//
//   const data::Picture photo = data::read_image("photo.jpg", {.height = 256, .width = 256, .channels = 3});
//   const data::Picture mask = data::read_image(
//       "mask.png", {.height = 256, .width = 256, .resampling = data::Resampling::nearest, .numbers = true});
//
// Formats and conversions are those of read_image_folder(). Throws Error{corrupt_file}, Error{io} and Error{not_available} with
// the path, and Error{invalid_argument} for `numbers` that are resized with another Resampling than nearest.
Picture read_image(const Location& path, const ImageOptions& options = {});

}  // namespace data
}  // namespace trireme
