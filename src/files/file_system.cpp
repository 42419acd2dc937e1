#include "trireme/files/file_system.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "files/remote_schemes.hpp"
#include "files/system_error.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/files/cached_file_system.hpp"
#include "trireme/files/file_memory.hpp"

namespace trireme {
namespace {

// All file systems, by scheme.
struct FileSystems {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<FileSystem>, std::less<>> of_scheme{{"file", posix_file_system()}};
};

// Never destroyed: at the end of the process what keeps encrypted connections can no longer end them.
FileSystems& file_systems() {
  static FileSystems& systems = *new FileSystems;
  return systems;
}

// TRIREME_CACHE names a folder for files that are fetched over the network, TRIREME_CACHE_BYTES how many bytes they may take.
std::shared_ptr<FileSystem> cached_where_asked(std::shared_ptr<FileSystem> remote) {
  const char* folder = std::getenv("TRIREME_CACHE");
  if (folder == nullptr || *folder == '\0') return remote;
  FileCacheOptions options{.folder = folder};
  if (const char* text = std::getenv("TRIREME_CACHE_BYTES"); text != nullptr && *text != '\0') {
    const auto bytes = parse_number<double>(text);
    require(bytes && *bytes >= 1 && *bytes < 0x1p63, "TRIREME_CACHE_BYTES={} is not a number of bytes, such as 200e9", text);
    options.most_bytes = static_cast<std::uint64_t>(*bytes);
  }
  return cached_file_system(std::move(remote), options);
}

FileKind kind_if_known(const Location& location) {
  try {
    return file_system_of(location)->kind_of(location);
  } catch (const Error&) {
    return FileKind::none;
  }
}

Location free_name_beside(const Location& location, FileSystem& files, std::unique_ptr<OutputFile>& file) {
  for (int attempt = 0;; ++attempt) {
    Location temporary = location.beside(fmt::format(".{}-{}.tmp", getpid(), attempt));
    try {
      file = files.create(temporary);
      return temporary;
    } catch (const Error& error) {
      if (error.fields().error_number != EEXIST || attempt == 100) throw;
    }
  }
}

// Lies beside the file that it replaces until it is closed, and is removed where it is not.
class FileBeside final : public OutputFile {
 public:
  FileBeside(FileSystem& files, Location location)
      : files_(files), location_(std::move(location)), temporary_(free_name_beside(location_, files_, file_)) {}

  ~FileBeside() override {
    if (renamed_) return;
    try {
      files_.remove_all(temporary_);
    } catch (const std::exception&) {  // it stays
    }
  }

  void reserve(std::uint64_t bytes) override { file_->reserve(bytes); }
  void write(std::span<const std::byte> bytes) override { file_->write(bytes); }
  void sync() override {
    if (finished_) return;
    file_->sync();
    file_->close();
    finished_ = true;
  }
  void close() override {
    sync();
    files_.rename(temporary_, location_);
    renamed_ = true;
    files_.sync_folder(location_.parent());
  }

 private:
  FileSystem& files_;
  Location location_;
  std::unique_ptr<OutputFile> file_;
  Location temporary_;  // its name until then
  bool finished_ = false;
  bool renamed_ = false;
};

}  // namespace

std::shared_ptr<const std::byte> InputFile::map() const {
  const std::uint64_t bytes = size();
  if (bytes == 0) return nullptr;
  const std::shared_ptr<std::byte[]> memory = memory_for(bytes, location());
  read_at({memory.get(), bytes}, 0);
  return {memory, memory.get()};
}

// The text grows with what has come: a server may state any size.
std::string InputFile::content() const {
  constexpr std::uint64_t least = std::uint64_t{64} << 20;
  const std::uint64_t bytes = size();
  std::string text;
  while (text.size() < bytes) {
    const std::size_t begin = text.size();
    const std::uint64_t end = std::min(bytes, std::max(least, 2 * std::uint64_t{begin}));
    try {
      text.resize(static_cast<std::size_t>(end));
    } catch (const std::bad_alloc&) {
      detail::refuse_memory(bytes, location());
    }
    read_at(std::as_writable_bytes(std::span(text).subspan(begin)), begin);
  }
  return text;
}

std::shared_ptr<std::byte[]> memory_for(std::uint64_t bytes, const Location& file) {
  try {
    return std::shared_ptr<std::byte[]>(new std::byte[static_cast<std::size_t>(bytes)]);
  } catch (const std::bad_alloc&) {
    detail::refuse_memory(bytes, file);
  }
}

void detail::refuse_memory(std::uint64_t bytes, const Location& file) {
  throw Error({.code = ErrorCode::out_of_memory,
               .message = fmt::format("there is no memory for {} bytes of the file", bytes),
               .path = file.string(),
               .hint = "is the file as large as it should be?"});
}

std::unique_ptr<OutputFile> FileSystem::replace(const Location& location) {
  return std::make_unique<FileBeside>(*this, location);
}

std::vector<std::string> FileSystem::names_in(const Location& folder) const {
  std::vector<std::string> names;
  if (!exists(folder)) return names;
  for (FolderEntry& entry : entries_of(folder)) names.push_back(std::move(entry.name));
  return names;
}

void add_file_system(const std::string& scheme, std::shared_ptr<FileSystem> system) {
  require(system != nullptr && Location(scheme + ":/x").scheme() == scheme,
          "\"{}\" is not a scheme: use a small letter, then small letters, digits, '+', '-' or '.'", scheme);
  FileSystems& systems = file_systems();
  const std::scoped_lock lock(systems.mutex);
  require(systems.of_scheme.emplace(scheme, std::move(system)).second, "the scheme {}: has a file system already", scheme);
}

std::shared_ptr<FileSystem> file_system_of(const Location& location) {
  FileSystems& systems = file_systems();
  const std::scoped_lock lock(systems.mutex);
  const auto found = systems.of_scheme.find(location.scheme());
  if (found != systems.of_scheme.end()) return found->second;
  if (std::ranges::find(remote_schemes, location.scheme()) != std::end(remote_schemes)) {
    return systems.of_scheme.emplace(location.scheme(), cached_where_asked(remote_file_system(location))).first->second;
  }
  std::set<std::string> schemes(std::begin(remote_schemes), std::end(remote_schemes));
  for (const auto& [scheme, system] : systems.of_scheme) schemes.insert(scheme);
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = fmt::format("there is no file system for {}:, only for {}:", location.scheme(), fmt::join(schemes, ":, ")),
       .path = location.string(),
       .hint = "write a file name with a colon as ./NAME; add other schemes by add_file_system()"});
}

std::unique_ptr<InputFile> open_file(const Location& location) { return file_system_of(location)->open(location); }

bool is_folder(const Location& location) { return kind_if_known(location) == FileKind::folder; }

bool is_there(const Location& location) { return kind_if_known(location) != FileKind::none; }

bool is_same(const Location& one, const Location& other) {
  if (one.scheme() != other.scheme() || one.empty() || other.empty()) return false;
  const auto files = file_system_of(one);
  return files->real(one) == files->real(other);
}

}  // namespace trireme
