#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// A file that is written from its beginning to its end.
class OutputFile {
 public:
  virtual ~OutputFile() = default;                // closes without a word
  virtual void reserve(std::uint64_t bytes) = 0;  // so that a full disk is known before the first byte
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual void sync() = 0;  // returns when the bytes are on the disk
  virtual void close() = 0;
};

class InputFile {
 public:
  virtual ~InputFile() = default;
  virtual std::uint64_t size() const = 0;
  virtual void read_at(std::span<std::byte> into, std::uint64_t offset) const = 0;  // a file that ends before is corrupt
};

// What is asked of a file system by those who must survive its failures: tests give one that fails, or loses what was not
// synced, on purpose. What it refuses is an Error{io} with the path and errno.
class FileSystem {
 public:
  using Path = std::filesystem::path;

  virtual ~FileSystem() = default;
  virtual std::unique_ptr<OutputFile> create(const Path& path) = 0;  // the file must not exist yet
  virtual std::unique_ptr<InputFile> open(const Path& path) const = 0;
  virtual void create_folder(const Path& path) = 0;  // it may exist
  virtual void rename(const Path& from, const Path& to) = 0;
  virtual void sync_folder(const Path& path) = 0;  // makes created, renamed and removed names in it durable
  virtual void remove_all(const Path& path) = 0;   // with everything in it; it may be missing
  virtual bool exists(const Path& path) const = 0;
  virtual std::vector<std::string> names_in(const Path& folder) const = 0;  // sorted; none in a folder that is missing
};

std::shared_ptr<FileSystem> posix_file_system();

}  // namespace trireme
