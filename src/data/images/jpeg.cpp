#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <string>
// clang-format off: jpeglib.h needs the headers before it
#include <jerror.h>
#include <jpeglib.h>

#include <cstdio>
// clang-format on

#include "data/images/decode_picture.hpp"
#include "trireme/data/sources/bad_samples.hpp"

namespace trireme::data {
namespace {

// The state of a libjpeg decoder. libjpeg reports errors by longjmp(), so the functions that call it, begin(), reduce() and
// read_rows(), must not have objects with destructors.
struct JpegReading {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf place;
  std::uint8_t* pixels = nullptr;
  std::size_t row_bytes = 0;
  JDIMENSION first_row = 0, end_row = 0;
  JDIMENSION first_column = 0, columns = 0;
  char message[JMSG_LENGTH_MAX] = {};

  JpegReading() = default;
  ~JpegReading() { jpeg_destroy_decompress(&jpeg); }  // also valid before jpeg_create_decompress(): all zeros
  JpegReading(const JpegReading&) = delete;
  JpegReading& operator=(const JpegReading&) = delete;

  static void fail(j_common_ptr jpeg) {
    auto* reading = static_cast<JpegReading*>(jpeg->client_data);
    jpeg->err->format_message(jpeg, reading->message);
    std::longjmp(reading->place, 1);
  }
  // libjpeg only warns about damaged data and fills pixels with grey, so warnings fail, except three that leave pixels correct.
  static void warn(j_common_ptr jpeg, int level) {
    if (level >= 0) return;
    const int code = jpeg->err->msg_code;
    if (code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM) fail(jpeg);
  }

  bool begin(const std::uint8_t* bytes, std::size_t count) {
    if (setjmp(place) != 0) return false;
    jpeg.err = jpeg_std_error(&errors);
    errors.error_exit = fail;
    errors.emit_message = warn;
    jpeg.client_data = this;
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, bytes, static_cast<unsigned long>(count));
    jpeg_read_header(&jpeg, TRUE);
    return true;
  }

  // The extents of the result are then known.
  bool reduce(int reduction) {
    if (setjmp(place) != 0) return false;
    jpeg.out_color_space = jpeg.jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    jpeg.scale_num = 1;
    jpeg.scale_denom = static_cast<unsigned>(reduction);
    jpeg_calc_output_dimensions(&jpeg);
    return true;
  }

  // Colours of a row and a column are blended with those beside them: what is decoded of a box is a little more.
  void take(const Box& box) {
    constexpr JDIMENSION beside = 2;
    const auto first = [](std::int64_t at) { return static_cast<JDIMENSION>(std::max<std::int64_t>(0, at - beside)); };
    const auto end = [](std::int64_t at, JDIMENSION most) { return std::min(static_cast<JDIMENSION>(at) + beside, most); };
    first_row = first(box.top);
    end_row = end(box.top + box.height, jpeg.output_height);
    first_column = first(box.left);
    columns = end(box.left + box.width, jpeg.output_width) - first_column;
  }

  bool read_rows() {
    if (setjmp(place) != 0) return false;
    jpeg_start_decompress(&jpeg);
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
    if (columns < jpeg.output_width) jpeg_crop_scanline(&jpeg, &first_column, &columns);
    if (first_row > 0) jpeg_skip_scanlines(&jpeg, first_row);
#else
    first_column = 0;  // other libraries decode whole rows, from the first one on
#endif
    while (jpeg.output_scanline < end_row) {
      JSAMPROW row = pixels + jpeg.output_scanline * row_bytes + first_column * static_cast<unsigned>(jpeg.output_components);
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    return true;
  }
};

}  // namespace

Picture decode_jpeg(std::span<const std::uint8_t> bytes, const Location& path, const PartRule& part_of) {
  JpegReading reading;
  const auto refuse = [&](std::string message, std::string hint) {
    throw BadSample({.message = std::move(message), .path = path.string(), .hint = std::move(hint)});
  };
  const auto require_read = [&](bool is_read) {
    if (!is_read) refuse(fmt::format("the JPEG image is damaged: {}", reading.message), "fetch or make the file again");
  };
  require_read(reading.begin(bytes.data(), bytes.size()));
  const J_COLOR_SPACE colours = reading.jpeg.jpeg_color_space;
  if (colours == JCS_CMYK || colours == JCS_YCCK)
    refuse("the JPEG image has the colours of a printer, CMYK", "convert it to RGB");
  if (colours != JCS_GRAYSCALE && colours != JCS_YCbCr && colours != JCS_RGB) {
    refuse(fmt::format("the JPEG image has {} components of an unknown colour space", reading.jpeg.num_components),
           "convert it to RGB");
  }
  const ImageShape stored{
      .height = reading.jpeg.image_height, .width = reading.jpeg.image_width, .channels = colours == JCS_GRAYSCALE ? 1 : 3};
  check_extents(stored.height, stored.width, path);
  const JpegPart part = part_of ? part_of(stored) : JpegPart{};
  require_read(reading.reduce(part.reduction));
  Picture picture = picture_to_fill(reading.jpeg.output_height, reading.jpeg.output_width, stored.channels, path);
  const Box all{.height = picture.shape.height, .width = picture.shape.width};
  reading.take(part.box.height > 0 ? part.box : all);
  reading.pixels = picture.pixels.data();
  reading.row_bytes = static_cast<std::size_t>(picture.shape.width * picture.shape.channels);
  require_read(reading.read_rows());
  return picture;
}

}  // namespace trireme::data
