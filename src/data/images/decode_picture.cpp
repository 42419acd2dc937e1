#include "data/images/decode_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "trireme/data/sources/bad_samples.hpp"

namespace trireme::data {
namespace {

using namespace std::string_view_literals;

struct PictureFormat {
  std::string_view begin;
  std::string_view name;
};
constexpr PictureFormat png_format{"\x89PNG\r\n\x1a\n"sv, "PNG"sv};
constexpr PictureFormat jpeg_format{"\xff\xd8\xff"sv, "JPEG"sv};
constexpr std::array other_formats = {PictureFormat{"GIF8"sv, "GIF"sv},     PictureFormat{"BM"sv, "BMP"sv},
                                      PictureFormat{"II*\0"sv, "TIFF"sv},   PictureFormat{"MM\0*"sv, "TIFF"sv},
                                      PictureFormat{"\0\0\1\0"sv, "ICO"sv}, PictureFormat{"\0\0\0\x0cjP"sv, "JPEG 2000"sv}};

Picture decode_as(std::span<const std::uint8_t> bytes, const Location& path, bool numbers, const PartRule& part_of) {
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 16));
  if (begin.starts_with(png_format.begin)) return decode_png(bytes, path, numbers);
  if (begin.starts_with(jpeg_format.begin)) return decode_jpeg(bytes, path, part_of);
  if (begin.starts_with("RIFF") && begin.substr(std::min<std::size_t>(begin.size(), 8)).starts_with("WEBP"))
    return decode_webp(bytes, path);
  const auto other =
      std::ranges::find_if(other_formats, [&](const PictureFormat& one) { return begin.starts_with(one.begin); });
  throw BadSample({.message = bytes.empty()                  ? "the file is empty"
                              : other != other_formats.end() ? fmt::format("the file is a {} image", other->name)
                                                             : "the file is no image",
                   .path = path.string(),
                   .wanted = "PNG, JPEG or WebP",
                   .hint = "convert it, or move it out of the folder"});
}

}  // namespace

Picture decode_picture(std::span<const std::uint8_t> bytes, const Location& path, bool numbers) {
  return decode_as(bytes, path, numbers, {});
}

Picture decode_part(std::span<const std::uint8_t> bytes, const Location& path, const PartRule& part_of) {
  return decode_as(bytes, path, false, part_of);
}

void check_extents(std::int64_t height, std::int64_t width, const Location& path) {
  if (height <= 0 || width <= 0 || width > most_pixels / height) {
    throw BadSample({.message = fmt::format("an image of {} x {} pixels is too large", height, width),
                     .path = path.string(),
                     .wanted = fmt::format("at most {} pixels", most_pixels)});
  }
}

Picture picture_to_fill(std::int64_t height, std::int64_t width, std::int64_t channels, const Location& path) {
  check_extents(height, width, path);
  Picture picture{.shape = {.height = height, .width = width, .channels = channels}, .pixels = {}};
  picture.pixels.resize(static_cast<std::size_t>(picture.shape.numel()));
  return picture;
}

Picture with_channels(Picture picture, std::int64_t channels) {
  if (picture.shape.channels == channels) return picture;
  Picture result{.shape = picture.shape, .pixels = {}};
  result.shape.channels = channels;
  result.pixels.reserve(static_cast<std::size_t>(result.shape.numel()));
  if (channels == 3) {
    for (const std::uint8_t grey : picture.pixels) result.pixels.insert(result.pixels.end(), 3, grey);
    return result;
  }
  for (std::size_t i = 0; i < picture.pixels.size(); i += 3) {
    const std::uint8_t* pixel = picture.pixels.data() + i;
    const std::uint32_t grey = pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000u;
    result.pixels.push_back(static_cast<std::uint8_t>(grey >> 16));
  }
  return result;
}

}  // namespace trireme::data
