#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// An open regular file of this machine; posix_file_system() uses it. Errors of the operating system become Error{io} with path
// and errno. To read files, use open_file() (files/file_system.hpp), which supports other file systems too.
class File {
 public:
  static File open(const std::filesystem::path& path);    // to read
  static File create(const std::filesystem::path& path);  // to write; the file must not exist yet

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint64_t size() const;

  // Fills `into` from byte `offset` on. Throws Error{corrupt_file} if the file ends too early.
  void read_at(std::span<std::byte> into, std::uint64_t offset) const;

  // Memory-maps the whole file. The mapping outlives the File.
  std::shared_ptr<const std::byte> map() const;

  void reserve(std::uint64_t bytes);  // allocates disk space for a file of this size, if the file system supports it
  void write(std::span<const std::byte> bytes);
  void sync();   // returns when the bytes are on the disk
  void close();  // the destructor closes too, but cannot report a failure

 private:
  File(std::filesystem::path path, int descriptor);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Allocates the disk blocks of these bytes of an open file, so that writing them later can't run out of space. Returns 0 or
// errno; repeats calls that a signal interrupts.
int reserve_blocks(int descriptor, std::uint64_t offset, std::uint64_t bytes);

void sync_folder(const std::filesystem::path& folder);  // makes created, renamed and removed entries durable

}  // namespace trireme
