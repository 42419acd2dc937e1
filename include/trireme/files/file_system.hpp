#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {

// A file that is written sequentially.
class OutputFile {
 public:
  virtual ~OutputFile() = default;                // closes without reporting errors
  virtual void reserve(std::uint64_t bytes) = 0;  // so that a full disk is noticed before the first write
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual void sync() = 0;  // returns when the bytes are on the disk
  virtual void close() = 0;
};

class InputFile {
 public:
  virtual ~InputFile() = default;
  virtual std::uint64_t size() const = 0;
  virtual void read_at(std::span<std::byte> into, std::uint64_t offset) const = 0;  // Error{corrupt_file} at an early end

  // The whole file as memory, which outlives the InputFile. Local files are memory-mapped, and other files are read as a whole.
  // Null for an empty file.
  virtual std::shared_ptr<const std::byte> map() const;

  // Whether map() reads from the disk when the memory is touched, so that a large file need not fit into memory. A cache
  // fetches the file first.
  virtual bool maps_from_disk() const { return false; }

  // A text that changes whenever the content changes, such as an ETag. Empty: unknown.
  virtual std::string version() const { return {}; }

  // For errors: where it was opened. Empty: unknown.
  virtual Location location() const { return {}; }

  std::string content() const;  // the whole file
};

enum class FileKind : std::uint8_t {
  none,  // nothing, or a broken link
  file,
  folder,
  other,  // a pipe, a socket, a device
};

// An entry of a folder. For a link, `kind` is the kind of its target.
struct FolderEntry {
  std::string name;
  FileKind kind = FileKind::none;
};

// The library reads and writes all files through the FileSystem of the location's scheme. Tests use a FileSystem that fails or
// loses unsynced data on purpose. Failures throw Error{io} with the location and errno. Functions may be called from several
// threads.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual std::unique_ptr<OutputFile> create(const Location& location) = 0;  // the file must not exist yet
  virtual std::unique_ptr<InputFile> open(const Location& location) const = 0;

  // Creates a file that replaces `location` atomically when it is closed. Without close() nothing changes. By default the new
  // file is written beside the old one, synced and renamed.
  virtual std::unique_ptr<OutputFile> replace(const Location& location);

  // Whether this file system stores objects instead of files in folders, as S3 does. There, an object appears whole when it is
  // closed, and a folder is a prefix of names. rename() copies an object and removes the old object; for a folder, it renames
  // one object after the other.
  virtual bool is_object_store() const { return false; }

  virtual void create_folder(const Location& location) = 0;  // the folder may exist
  virtual void rename(const Location& from, const Location& to) = 0;
  virtual void sync_folder(const Location& location) = 0;  // makes created, renamed and removed entries durable
  virtual void remove_all(const Location& location) = 0;   // removes a folder with its content; `location` may be missing
  virtual FileKind kind_of(const Location& location) const = 0;
  virtual std::vector<FolderEntry> entries_of(const Location& folder) const = 0;  // sorted by name; the folder must exist

  // The location with all links resolved: equal for two locations of one place, even if the place does not exist.
  virtual Location real(const Location& location) const { return location; }

  bool exists(const Location& location) const { return kind_of(location) != FileKind::none; }
  std::vector<std::string> names_in(const Location& folder) const;  // sorted; empty if the folder is missing
};

std::shared_ptr<FileSystem> posix_file_system();

// Registers the file system of a scheme, for example "gs". Throws Error{invalid_argument} if the scheme already has a file
// system. "file" always has one. Another scheme gets one when a location with the scheme is opened. So a program may register
// its own "s3" before it opens a location on S3.
void add_file_system(const std::string& scheme, std::shared_ptr<FileSystem> system);

// "http", "https", "s3" and "webhdfs" need no registration (files/remote/remote_file_systems.hpp). Throws
// Error{invalid_argument}, which lists the known schemes, if the location's scheme is unknown.
std::shared_ptr<FileSystem> file_system_of(const Location& location);

std::unique_ptr<InputFile> open_file(const Location& location);

// is_folder() and is_there() also return false if the answer can't be found out, for example for an unknown scheme. Opening
// then throws the reason.
bool is_folder(const Location& location);
bool is_there(const Location& location);

// Whether both locations name the same place, even if this place does not exist. False for an empty location.
bool is_same(const Location& one, const Location& other);

// Replaces a file atomically, by FileSystem::replace(). To replace several files, call finish() on all of them before the first
// commit().
class FileReplacement {
 public:
  explicit FileReplacement(const Location& location) : file_(file_system_of(location)->replace(location)) {}

  void write(std::span<const std::byte> bytes) { file_->write(bytes); }
  void finish() { file_->sync(); }   // returns when the bytes are on the disk; ends writing
  void commit() { file_->close(); }  // calls finish() first; without commit() nothing changes

 private:
  std::unique_ptr<OutputFile> file_;
};

}  // namespace trireme
