#include "trireme/files/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include "files/system_error.hpp"
#include "trireme/core/error.hpp"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_request = std::size_t{1} << 30;  // Linux moves at most 2^31 - 4096 bytes in one call

struct stat status_of(int descriptor, const fs::path& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) throw_system_error("the file's size cannot be read", path, errno);
  return status;
}

}  // namespace

File::File(fs::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

File::File(File&& other) noexcept : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File File::open(const fs::path& path) {
  // With O_NONBLOCK, opening a named pipe does not wait for a writer, so that it can be refused.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw_system_error("the file cannot be opened", path, errno);
  File file(path, descriptor);
  if (!S_ISREG(status_of(descriptor, path).st_mode)) {
    throw_system_error("the file cannot be opened", path, 0, "it is not a regular file");
  }
  return file;
}

File File::create(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) throw_system_error("the file cannot be created", path, errno);
  return File(path, descriptor);
}

std::uint64_t File::size() const { return static_cast<std::uint64_t>(status_of(descriptor_, path_).st_size); }

void File::read_at(std::span<std::byte> into, std::uint64_t offset) const {
  while (!into.empty()) {
    const ssize_t count = pread(descriptor_, into.data(), std::min(into.size(), largest_request), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error(fmt::format("{} bytes at {} cannot be read", into.size(), offset), path_, errno);
    if (count == 0) {
      throw Error({.code = ErrorCode::corrupt_file,
                   .message = fmt::format("the file ends at byte {}, but {} more bytes are needed", offset, into.size()),
                   .path = path_.string()});
    }
    into = into.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

std::shared_ptr<const std::byte> File::map() const {
  const std::size_t bytes = size();
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) throw_system_error("the file cannot be mapped into memory", path_, errno);
  return {static_cast<const std::byte*>(memory), [memory, bytes](const std::byte*) { munmap(memory, bytes); }};
}

void File::reserve(std::uint64_t bytes) {
  const int error_number = reserve_blocks(descriptor_, 0, bytes);
  if (error_number != 0 && error_number != EOPNOTSUPP && error_number != EINVAL) {
    throw_system_error(fmt::format("there is no room for {} bytes", bytes), path_, error_number);
  }
}

void File::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), std::min(bytes.size(), largest_request));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error(fmt::format("{} bytes cannot be written", bytes.size()), path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void File::sync() {
  if (fsync(descriptor_) != 0) throw_system_error("the file cannot be brought to the disk", path_, errno);
}

void File::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_system_error("the file cannot be closed", path_, errno);
}

int reserve_blocks(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  // A signal undoes a whole call, so each call is small enough to finish between two signals.
  constexpr std::uint64_t piece = std::uint64_t{16} << 20;
  const std::uint64_t end = offset + bytes;
  while (offset < end) {
    const std::uint64_t size = std::min(piece, end - offset);
    const int error_number = posix_fallocate(descriptor, static_cast<off_t>(offset), static_cast<off_t>(size));
    if (error_number == EINTR) continue;
    if (error_number != 0) return error_number;
    offset += size;
  }
  return 0;
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_system_error("the folder cannot be opened", folder, errno);
  const int result = fsync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  if (result != 0) throw_system_error("the folder cannot be brought to the disk", folder, error_number);
}

}  // namespace trireme
