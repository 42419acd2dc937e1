#pragma once

#include <filesystem>
#include <string>

namespace trireme::data {

// The content of a file, or of all regular files in a folder and its subfolders, sorted by path and joined by a newline.
std::string read_text(const std::filesystem::path& path);

}  // namespace trireme::data
