#pragma once

#include <memory>

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::checkpoint {

// Error{corrupt_file} where the size or the header is not what the manifest says.
std::unique_ptr<InputFile> open_saved(const FileSystem& files, const Location& path, const SavedFile& file);

}  // namespace trireme::checkpoint
