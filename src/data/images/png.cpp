#include "data/images/png.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>

#include "data/images/decode_picture.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/bad_samples.hpp"

namespace trireme::data {
namespace {

// The state of a libpng decoder. libpng reports errors by longjmp(), so the functions that call it, begin() and read_rows(),
// must not have objects with destructors.
struct PngReading {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::uint8_t* next = nullptr;
  std::size_t left = 0;
  int bits = 0;  // bits per channel in the file
  int passes = 1;
  std::uint8_t* pixels = nullptr;
  std::size_t row_bytes = 0;
  char message[200] = {};

  PngReading() = default;
  ~PngReading() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReading(const PngReading&) = delete;
  PngReading& operator=(const PngReading&) = delete;

  static void fail(png_structp png, png_const_charp text) {
    auto* reading = static_cast<PngReading*>(png_get_error_ptr(png));
    std::snprintf(reading->message, sizeof reading->message, "%s", text);
    png_longjmp(png, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  static void give(png_structp png, png_bytep into, std::size_t bytes) {
    auto* reading = static_cast<PngReading*>(png_get_io_ptr(png));
    if (bytes > reading->left) png_error(png, "the file ends early");
    std::copy_n(reading->next, bytes, into);
    reading->next += bytes;
    reading->left -= bytes;
  }

  bool begin(bool numbers) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    png_set_read_fn(png, this, give);
    png_read_info(png, info);
    bits = png_get_bit_depth(png, info);
    if (numbers) {
      png_set_packing(png);  // expands less than 8 bits to a byte
    } else {
      png_set_expand(png);  // expands palettes to colours and less than 8 bits to 8
    }
    png_set_strip_16(png);  // keeps the upper 8 of 16 bits
    png_set_strip_alpha(png);
    passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    row_bytes = png_get_rowbytes(png, info);
    return true;
  }

  bool read_rows() {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    for (int pass = 0; pass < passes; ++pass) {
      for (png_uint_32 row = 0; row < png_get_image_height(png, info); ++row)
        png_read_row(png, pixels + row * row_bytes, nullptr);
    }
    png_read_end(png, nullptr);
    return true;
  }
};

}  // namespace

Picture decode_png(std::span<const std::uint8_t> bytes, const Location& path, bool numbers) {
  PngReading reading;
  const auto require_read = [&](bool is_read) {
    if (is_read) return;
    throw BadSample({.message = fmt::format("the PNG image is damaged: {}", reading.message),
                     .path = path.string(),
                     .hint = "fetch or make the file again"});
  };
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, PngReading::fail, PngReading::ignore);
  if (reading.png != nullptr) reading.info = png_create_info_struct(reading.png);
  if (reading.info == nullptr) throw Error({.code = ErrorCode::out_of_memory, .message = "libpng cannot start to read"});
  reading.next = bytes.data();
  reading.left = bytes.size();
  require_read(reading.begin(numbers));
  if (numbers && reading.bits > 8) {
    throw BadSample({.message = fmt::format("the numbers of the PNG image have {} bits", reading.bits),
                     .path = path.string(),
                     .wanted = "8 bits or less",
                     .hint = "save it with numbers up to 255"});
  }
  Picture picture =
      picture_to_fill(png_get_image_height(reading.png, reading.info), png_get_image_width(reading.png, reading.info),
                      png_get_channels(reading.png, reading.info), path);
  reading.pixels = picture.pixels.data();
  require_read(reading.read_rows());
  return picture;
}

std::vector<std::uint8_t> png_of(const Picture& picture, const Location& path) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 31;  // libpng counts bytes in 32 bits
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
