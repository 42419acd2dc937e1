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

  // The whole file as memory, which outlives this. A file of this machine is read when the memory is touched, others are read
  // here. Null of an empty file.
  virtual std::shared_ptr<const std::byte> map() const;

  std::string content() const;  // of the whole file
};

enum class FileKind : std::uint8_t {
  none,  // there is nothing, or a link that leads nowhere
  file,
  folder,
  other,  // a pipe, a socket, a device
};

// What a folder holds. The kind is that of what a link leads to.
struct FolderEntry {
  std::string name;
  FileKind kind = FileKind::none;
};

// All that is read and written goes through one of these: that of the location's scheme. Tests give one that fails, or loses
// what was not synced, on purpose. What it refuses is an Error{io} with the location and errno. Called from several threads.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual std::unique_ptr<OutputFile> create(const Location& location) = 0;  // the file must not exist yet
  virtual std::unique_ptr<InputFile> open(const Location& location) const = 0;
  virtual void create_folder(const Location& location) = 0;  // it may exist
  virtual void rename(const Location& from, const Location& to) = 0;
  virtual void sync_folder(const Location& location) = 0;  // makes created, renamed and removed names in it durable
  virtual void remove_all(const Location& location) = 0;   // with everything in it; it may be missing
  virtual FileKind kind_of(const Location& location) const = 0;
  virtual std::vector<FolderEntry> entries_of(const Location& folder) const = 0;  // sorted by name; it must exist

  // The place without links: two locations of one place, be it there or not, have the same.
  virtual Location real(const Location& location) const { return location; }

  bool exists(const Location& location) const { return kind_of(location) != FileKind::none; }
  std::vector<std::string> names_in(const Location& folder) const;  // sorted; none in a folder that is missing
};

std::shared_ptr<FileSystem> posix_file_system();

// From now on it serves locations of this scheme, as "s3". Error{invalid_argument} where the scheme has one, as "file" has.
void add_file_system(const std::string& scheme, std::shared_ptr<FileSystem> system);

// Error{invalid_argument} names the schemes there are.
std::shared_ptr<FileSystem> file_system_of(const Location& location);

std::unique_ptr<InputFile> open_file(const Location& location);

// Both are false, too, where nobody can tell, as of an unknown scheme: who opens it then learns why.
bool is_folder(const Location& location);
bool is_there(const Location& location);

// Whether both name one place, be it there or not. Nothing has none.
bool is_same(const Location& one, const Location& other);

// Writes a file so that `location` holds either its old content or all of the new one: the bytes go to a temporary file beside
// it, which commit() renames. Without commit() the temporary file is removed. Who replaces several files brings all of them to
// the disk by finish() before the first is renamed.
class FileReplacement {
 public:
  explicit FileReplacement(Location location);
  ~FileReplacement();
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  void write(std::span<const std::byte> bytes) { file_->write(bytes); }
  void finish();  // the bytes are on the disk; none can follow
  void commit();  // finishes

 private:
  Location location_;
  std::shared_ptr<FileSystem> files_;
  std::unique_ptr<OutputFile> file_;
  Location temporary_;  // its name until then
  bool finished_ = false;
  bool committed_ = false;
};

}  // namespace trireme
