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

  // A file that takes the place of what is there, or the first, when it is closed, all of it at once. Without close() nothing
  // changes. By default it is written beside, synced, and renamed.
  virtual std::unique_ptr<OutputFile> replace(const Location& location);

  // Whether it has objects with names in place of files in folders, as S3. A file is then there once it is closed, and at once;
  // a folder is what names begin with, and rename() copies: a file in one act, what is in a folder one by one.
  virtual bool is_object_store() const { return false; }

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

// From now on it serves locations of this scheme, as "gs". Error{invalid_argument} where the scheme has one: "file", and each
// that was looked for before. So a program may serve "s3" itself, if it says so before its first location of it.
void add_file_system(const std::string& scheme, std::shared_ptr<FileSystem> system);

// Of "http", "https", "s3" and "webhdfs" there is one without a call (files/remote/remote_file_systems.hpp).
// Error{invalid_argument} names the schemes there are.
std::shared_ptr<FileSystem> file_system_of(const Location& location);

std::unique_ptr<InputFile> open_file(const Location& location);

// Both are false, too, where nobody can tell, as of an unknown scheme: who opens it then learns why.
bool is_folder(const Location& location);
bool is_there(const Location& location);

// Whether both name one place, be it there or not. Nothing has none.
bool is_same(const Location& one, const Location& other);

// Writes a file so that `location` holds either its old content or all of the new one. Who replaces several files brings all of
// them to the disk by finish() before the first takes its place.
class FileReplacement {
 public:
  explicit FileReplacement(const Location& location) : file_(file_system_of(location)->replace(location)) {}

  void write(std::span<const std::byte> bytes) { file_->write(bytes); }
  void finish() { file_->sync(); }   // the bytes are on the disk; none can follow
  void commit() { file_->close(); }  // finishes; without it nothing changes

 private:
  std::unique_ptr<OutputFile> file_;
};

}  // namespace trireme
