#include "data/sources/gzip.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {

std::vector<std::uint8_t> gunzip(std::span<const std::uint8_t>, const Location& path) {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build has no zlib: a gzip file cannot be read",
               .path = path.string(),
               .hint = "unpack it with gunzip, or install zlib1g-dev and build again"});
}

}  // namespace trireme::data
