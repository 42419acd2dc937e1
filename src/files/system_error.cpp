#include "files/system_error.hpp"

#include <utility>

#include "trireme/core/error.hpp"

namespace trireme {

void throw_system_error(std::string message, const std::filesystem::path& path, int error_number, std::string hint) {
  throw Error({.code = ErrorCode::io,
               .message = std::move(message),
               .path = path.string(),
               .error_number = error_number,
               .hint = std::move(hint)});
}

}  // namespace trireme
