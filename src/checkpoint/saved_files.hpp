#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::checkpoint {

std::string read_text(const FileSystem& files, const std::filesystem::path& path);

// Error{corrupt_file} where the size or the header is not what the manifest says.
std::unique_ptr<InputFile> open_saved(const FileSystem& files, const std::filesystem::path& path, const SavedFile& file);

}  // namespace trireme::checkpoint
