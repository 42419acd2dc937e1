#pragma once

#include <memory>

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::checkpoint {

// Opens a file of a checkpoint. Throws Error{corrupt_file} where its size or header differs from the manifest.
std::unique_ptr<InputFile> open_saved(const FileSystem& files, const Location& path, const SavedFile& file);

}  // namespace trireme::checkpoint
