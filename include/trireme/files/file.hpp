#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// An open regular file of this machine, of which posix_file_system() is made. Whatever the operating system refuses is an
// Error{io} with the path and errno. Readers take open_file() (files/file_system.hpp), which knows other file systems too.
class File {
 public:
  static File open(const std::filesystem::path& path);    // to read
  static File create(const std::filesystem::path& path);  // to write; the file must not exist yet

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint64_t size() const;

  // Fills `into` from byte `offset` on; a file that ends before is an Error{corrupt_file}.
  void read_at(std::span<std::byte> into, std::uint64_t offset) const;

  // The whole file as memory that is read from the disk when it is touched; it outlives the File.
  std::shared_ptr<const std::byte> map() const;

  void reserve(std::uint64_t bytes);  // disk space for a file of this size, where the file system can
  void write(std::span<const std::byte> bytes);
  void sync();   // returns when the bytes are on the disk
  void close();  // the destructor closes too, but cannot report a failure

 private:
  File(std::filesystem::path path, int descriptor);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Gives an open file its blocks for these bytes, so that what is written there later finds room. 0, or what the system says
// against it; a signal is not an obstacle.
int reserve_blocks(int descriptor, std::uint64_t offset, std::uint64_t bytes);

void sync_folder(const std::filesystem::path& folder);  // makes created, renamed and removed names in it durable

}  // namespace trireme
