#pragma once

#include <cstdint>
#include <memory>

#include "trireme/core/export.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme TRIREME_EXPORT {

struct FileCacheOptions {
  Location folder;               // on this machine; created if it is missing
  std::uint64_t most_bytes = 0;  // limit of all cached files together; 0: the room on the disk
};

// Wraps a file system in a cache: files that were read stay on this machine's disk. All ranks of a machine, and several jobs,
// may share the folder: one process fetches a file while the other processes wait for the file.
//
//   add_file_system("gs", cached_file_system(std::make_shared<GoogleStorage>(), {.folder = "/local/cache", .most_bytes =
//   1e12}));
//
// Reading fetches the whole file. Only the first short reads, such as reading a header, fetch just their bytes. A file is
// identified by its location, size and version (InputFile::version()); files without a version are never cached. Opening a
// cached file verifies its checksum, and fetches the file again if the file is damaged. If the files exceed `most_bytes`, the
// files that were opened least recently are removed. If the cache's disk is full, files are read from the wrapped file system,
// and one line in the log says so.
std::shared_ptr<FileSystem> cached_file_system(std::shared_ptr<FileSystem> files, const FileCacheOptions& options);

}  // namespace trireme
