#include "data/png.hpp"

#include <fmt/format.h>
#include <png.h>

#include "trireme/core/error.hpp"

namespace trireme::data {

std::vector<std::uint8_t> png_of(const Picture& picture, const std::filesystem::path& path) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 31;  // libpng counts them in 32 bits
  require(picture.shape.numel() < most_bytes, "a picture of {} x {} pixels is too large for a PNG file", picture.shape.height,
          picture.shape.width);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.shape.width);
  image.height = static_cast<png_uint_32>(picture.shape.height);
  image.format = picture.shape.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::uint8_t> file(bytes);
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, picture.pixels.data(), 0, nullptr) == 0) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("libpng cannot write the picture: {}", image.message),
                 .path = path.string()});
  }
  file.resize(bytes);
  return file;
}

}  // namespace trireme::data
