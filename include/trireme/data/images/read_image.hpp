#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/data/images/picture.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

enum class Resampling : std::uint8_t {
  nearest,   // one pixel stays: for masks, whose numbers have no mean
  bilinear,  // a mean of all pixels that are replaced
  bicubic,
};

// What is done to an image before its centre is taken.
struct Resizing {
  std::int64_t height = 0;  // pixels to which it is resized, whatever its proportions; 0: those that are taken
  std::int64_t width = 0;
  std::int64_t shorter = 0;  // above 0, instead: the pixels of its shorter side, and the proportions stay
  Resampling resampling = Resampling::bilinear;
};

struct ImageOptions {
  std::int64_t height = 0;  // pixels to which it is resized; 0: those of the file
  std::int64_t width = 0;
  std::int64_t channels = 0;  // 3: red, green and blue; 1: grey; 0: as the file has them
  Resampling resampling = Resampling::bilinear;

  // The numbers that the file stores, in one channel: of a palette the places of its colours, of grey pixels of 1, 2 or 4 bits
  // 0 to 15. An image in colours is an Error, unless its three channels are the same.
  bool numbers = false;
};

// A PNG or JPEG file:
//
//   const data::Picture photo = data::read_image("photo.jpg", {.height = 256, .width = 256, .channels = 3});
//   const data::Picture mask = data::read_image(
//       "mask.png", {.height = 256, .width = 256, .resampling = data::Resampling::nearest, .numbers = true});
//
// Everything else is as in read_image_folder(). Throws Error{corrupt_file}, Error{io} and Error{not_available} with the path,
// and Error{invalid_argument} where numbers would be blended.
Picture read_image(const Location& path, const ImageOptions& options = {});

}  // namespace data
}  // namespace trireme
