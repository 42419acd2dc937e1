#pragma once

#include <memory>
#include <string_view>

#include "trireme/files/file_system.hpp"

namespace trireme {

// Those that files/remote serves.
inline constexpr std::string_view remote_schemes[] = {"http", "https", "s3", "webhdfs"};

// Of one of them. Error{not_available} where this build lacks what it takes.
std::shared_ptr<FileSystem> remote_file_system(const Location& location);

}  // namespace trireme
