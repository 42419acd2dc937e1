#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "files/system_error.hpp"
#include "trireme/files/file.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme {
namespace {

namespace fs = std::filesystem;

class PosixOutput final : public OutputFile {
 public:
  explicit PosixOutput(File file) : file_(std::move(file)) {}
  void reserve(std::uint64_t bytes) override { file_.reserve(bytes); }
  void write(std::span<const std::byte> bytes) override { file_.write(bytes); }
  void sync() override { file_.sync(); }
  void close() override { file_.close(); }

 private:
  File file_;
};

class PosixInput final : public InputFile {
 public:
  explicit PosixInput(File file) : file_(std::move(file)) {}
  std::uint64_t size() const override { return file_.size(); }
  void read_at(std::span<std::byte> into, std::uint64_t offset) const override { file_.read_at(into, offset); }
  std::shared_ptr<const std::byte> map() const override { return size() == 0 ? nullptr : file_.map(); }
  bool maps_from_disk() const override { return true; }
  Location location() const override { return file_.path(); }

 private:
  File file_;
};

void check(const std::error_code& error, const char* message, const fs::path& path) {
  if (error) throw_system_error(message, path, error.value());
}

FileKind kind_of_status(const fs::file_status& status) {
  switch (status.type()) {
    case fs::file_type::regular: return FileKind::file;
    case fs::file_type::directory: return FileKind::folder;
    case fs::file_type::none:
    case fs::file_type::not_found: return FileKind::none;
    default: return FileKind::other;
  }
}

// Listing a folder returns most kinds; only links need a call each.
FileKind kind_of_entry(const fs::directory_entry& entry) {
  std::error_code unknown;
  if (entry.is_regular_file(unknown)) return FileKind::file;
  if (entry.is_directory(unknown)) return FileKind::folder;
  return kind_of_status(entry.status(unknown));
}

class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const Location& location) override {
    return std::make_unique<PosixOutput>(File::create(location));
  }
  std::unique_ptr<InputFile> open(const Location& location) const override {
    return std::make_unique<PosixInput>(File::open(location));
  }

  void create_folder(const Location& location) override {
    std::error_code error;
    fs::create_directories(location, error);
    check(error, "the folder cannot be created", location);
  }
  void rename(const Location& from, const Location& to) override {
    std::error_code error;
    fs::rename(from, to, error);
    if (error) throw_system_error("it cannot be renamed to " + to.string(), from, error.value());
  }
  void sync_folder(const Location& location) override {
    trireme::sync_folder(location.empty() ? fs::path(".") : fs::path(location));
  }
  void remove_all(const Location& location) override {
    std::error_code error;
    fs::remove_all(location, error);
    check(error, "it cannot be removed", location);
  }
  FileKind kind_of(const Location& location) const override {
    std::error_code error;
    const fs::file_status status = fs::status(location, error);
    const bool is_circle = error.value() == ELOOP;  // a circle of links
    if (status.type() == fs::file_type::none && !is_circle) check(error, "it cannot be looked for", location);
    return kind_of_status(status);
  }
  std::vector<FolderEntry> entries_of(const Location& folder) const override {
    std::vector<FolderEntry> entries;
    std::error_code error;
    for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      entries.push_back({.name = entry->path().filename().string(), .kind = kind_of_entry(*entry)});
    }
    check(error, "the folder cannot be read", folder);
    std::ranges::sort(entries, {}, &FolderEntry::name);
    return entries;
  }
  Location real(const Location& location) const override {
    std::error_code error;
    fs::path path = fs::weakly_canonical(fs::absolute(location, error), error);
    check(error, "it cannot be looked for", location);
    return path;
  }
};

}  // namespace

std::shared_ptr<FileSystem> posix_file_system() {
  static const auto system = std::make_shared<PosixFileSystem>();
  return system;
}

}  // namespace trireme
