#include "data/images/decode_picture.hpp"
#include "data/images/png.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

[[noreturn]] void refuse_png(const char* message, const Location& path) {
  throw Error({.code = ErrorCode::not_available,
               .message = message,
               .path = path.string(),
               .hint = "install libpng-dev and build again"});
}

}  // namespace

std::vector<std::uint8_t> png_of(const Picture&, const Location& path) {
  refuse_png("this build has no libpng: a picture cannot be written", path);
}

Picture decode_png(std::span<const std::uint8_t>, const Location& path, bool) {
  refuse_png("this build has no libpng: a PNG image cannot be read", path);
}

}  // namespace trireme::data
