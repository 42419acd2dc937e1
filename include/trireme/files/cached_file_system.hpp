#pragma once

#include <cstdint>
#include <memory>

#include "trireme/core/export.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme TRIREME_EXPORT {

struct FileCacheOptions {
  Location folder;               // of this machine; it is created
  std::uint64_t most_bytes = 0;  // that the cached files take; 0: as many as the disk has room for
};

// The same file system, of which files that were read once are kept on this machine's disk. All ranks of a machine, and several
// jobs, may share the folder: a file is fetched by one of them while the others wait.
//
//   add_file_system("gs", cached_file_system(std::make_shared<GoogleStorage>(), {.folder = "/local/cache", .most_bytes =
//   1e12}));
//
// A file is fetched as a whole when it is read, but for the first short reads, such as that of a head. It is kept under its
// location, size and version (InputFile::version()); files without a version are never kept. A kept file is checked by its
// checksum when it is opened, and fetched again where it is damaged. Beyond `most_bytes` the files that were not opened for the
// longest time go. Where the folder's disk is full, files are read from where they are, and the log says so once.
std::shared_ptr<FileSystem> cached_file_system(std::shared_ptr<FileSystem> files, const FileCacheOptions& options);

}  // namespace trireme
