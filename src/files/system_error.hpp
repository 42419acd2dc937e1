#pragma once

#include <filesystem>
#include <string>

namespace trireme {

[[noreturn]] void throw_system_error(std::string message, const std::filesystem::path& path, int error_number,
                                     std::string hint = {});

}  // namespace trireme
