#include "data/png.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {

std::vector<std::uint8_t> png_of(const Picture&, const std::filesystem::path& path) {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build has no libpng: a picture cannot be written",
               .path = path.string(),
               .hint = "install libpng-dev and build again"});
}

}  // namespace trireme::data
