#include "data/images/decode_picture.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {

Picture decode_webp(std::span<const std::uint8_t>, const Location& path) {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build has no libwebp: a WebP image cannot be read",
               .path = path.string(),
               .hint = "install libwebp-dev and build again"});
}

}  // namespace trireme::data
