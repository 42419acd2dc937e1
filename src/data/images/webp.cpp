#include <fmt/format.h>
#include <webp/decode.h>

#include "data/images/decode_picture.hpp"
#include "trireme/data/sources/bad_samples.hpp"

namespace trireme::data {
namespace {

[[noreturn]] void refuse_webp(std::string_view what, const Location& path, std::string_view hint) {
  throw BadSample({.message = fmt::format("the WebP image {}", what), .path = path.string(), .hint = std::string(hint)});
}

}  // namespace

Picture decode_webp(std::span<const std::uint8_t> bytes, const Location& path) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) {
    refuse_webp("is damaged: its head cannot be read", path, "fetch or make the file again");
  }
  if (features.has_animation != 0) refuse_webp("is an animation", path, "save one of its images");
  Picture picture = picture_to_fill(features.height, features.width, 3, path);
  const int row_bytes = 3 * features.width;
  if (WebPDecodeRGBInto(bytes.data(), bytes.size(), picture.pixels.data(), picture.pixels.size(), row_bytes) == nullptr) {
    refuse_webp("is damaged: its pixels cannot be read", path, "fetch or make the file again");
  }
  return picture;
}

}  // namespace trireme::data
