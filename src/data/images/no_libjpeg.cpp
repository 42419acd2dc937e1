#include "data/images/decode_picture.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {

Picture decode_jpeg(std::span<const std::uint8_t>, const Location& path, const PartRule&) {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build has no libjpeg: a JPEG image cannot be read",
               .path = path.string(),
               .hint = "install libjpeg-dev and build again"});
}

}  // namespace trireme::data
