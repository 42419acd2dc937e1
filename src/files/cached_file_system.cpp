#include "trireme/files/cached_file_system.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "files/system_error.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/files/crc32c.hpp"
#include "trireme/files/file.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece_bytes = std::size_t{8} << 20;
constexpr std::size_t short_read = std::size_t{1} << 20;
constexpr int most_passed_on = 4;  // short reads of a file
constexpr std::string_view ending = ".cached";

// Held by one process at a time; the system lets go of it when that process ends.
class FileLock {
 public:
  explicit FileLock(const fs::path& path) : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw_system_error("the lock of a cache cannot be opened", path, errno);
    while (flock(descriptor_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      const int error_number = errno;
      ::close(descriptor_);
      throw_system_error("the lock of a cache cannot be taken", path, error_number);
    }
  }
  ~FileLock() { ::close(descriptor_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

// What follows the bytes of a kept file, with the name of what it is.
struct Trailer {
  std::uint64_t bytes = 0;       // of the file
  std::uint64_t name_bytes = 0;  // of its identity, which stands ahead of the trailer
  std::uint32_t checksum = 0;    // of both
  std::uint32_t magic = 0x54524331;
};

bool is_full(const Error& error) {
  const int number = error.fields().error_number;
  return number == ENOSPC || number == EDQUOT || number == EFBIG;
}

// A folder of files that were fetched. Its functions are called from several threads and processes.
class FileCache {
 public:
  // In a folder of its own: files of others beside it are neither counted nor removed.
  explicit FileCache(const FileCacheOptions& options) : most_bytes_(options.most_bytes) {
    require(!options.folder.empty(), "a cache of files needs a folder");
    folder_ = fs::path(options.folder) / "trireme-files";
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) throw_system_error("the folder of a cache cannot be created", folder_, error.value());
  }

  // Whether there is one that open() would look at first.
  bool may_have(const std::string& identity) const {
    std::error_code unknown;
    return fs::exists(path_of(identity), unknown);
  }

  // The file of this identity, fetched where it is not here yet. Nothing where it can't be kept.
  std::optional<File> open(const std::string& identity, const InputFile& remote) {
    const std::uint64_t bytes = remote.size();
    std::error_code unknown;
    const std::uint64_t capacity = fs::space(folder_, unknown).capacity, most = most_bytes_ == 0 ? capacity : most_bytes_;
    const std::uint64_t beside = identity.size() + sizeof(Trailer);
    if (most < beside || bytes > std::min(most, capacity) - beside) return std::nullopt;
    const fs::path path = path_of(identity);
    try {
      if (std::optional<File> kept = open_kept(path, identity, bytes)) return kept;
      const FileLock lock(folder_ / fmt::format("fetch-{}.lock", path.filename().string().substr(0, 2)));
      if (std::optional<File> kept = open_kept(path, identity, bytes)) return kept;  // another one has fetched it meanwhile
      fetch(path, identity, remote, bytes);
      return open_kept(path, identity, bytes);
    } catch (const Error& error) {
      if (!is_full(error)) throw;
      if (!told_.exchange(true)) log(Severity::warning, "{} is full: files are read from where they are", folder_.string());
      return std::nullopt;
    }
  }

 private:
  // Of the location alone, so that a changed file takes the place of its older version.
  fs::path path_of(const std::string& identity) const {
    const std::string_view location = std::string_view(identity).substr(0, identity.find('\n'));
    return folder_ / fmt::format("{:016x}{}", digest_of_bytes(std::as_bytes(std::span(location))), ending);
  }

  // Nothing where it is not here, or another file or damaged.
  static std::optional<File> open_kept(const fs::path& path, const std::string& identity, std::uint64_t bytes) {
    std::error_code unknown;
    if (!fs::exists(path, unknown)) return std::nullopt;
    try {
      File file = File::open(path);
      Trailer trailer;
      const std::uint64_t wanted = bytes + identity.size() + sizeof trailer;
      if (file.size() != wanted) return std::nullopt;
      file.read_at(std::as_writable_bytes(std::span(&trailer, 1)), wanted - sizeof trailer);
      if (trailer.magic != Trailer().magic || trailer.bytes != bytes || trailer.name_bytes != identity.size())
        return std::nullopt;
      const auto memory = file.map();
      const std::span<const std::byte> all(memory.get(), bytes + identity.size());
      if (std::memcmp(all.data() + bytes, identity.data(), identity.size()) != 0 || crc32c(all) != trailer.checksum)
        return std::nullopt;
      utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // it was used now
      return file;
    } catch (const Error&) {  // removed meanwhile, or the disk fails: it is fetched again
      return std::nullopt;
    }
  }

  void fetch(const fs::path& path, const std::string& identity, const InputFile& remote, std::uint64_t bytes) {
    fs::path temporary = path;
    temporary += ".tmp";
    for (bool is_second = false;; is_second = true) {
      std::error_code ignored;
      fs::remove(temporary, ignored);  // of a process that was killed
      try {
        make_room(bytes + identity.size() + sizeof(Trailer), is_second);
        write(temporary, identity, remote, bytes);
        break;
      } catch (const Error& error) {
        fs::remove(temporary, ignored);
        if (!is_full(error) || is_second) throw;
      }
    }
    std::error_code error;
    fs::rename(temporary, path, error);
    if (error) throw_system_error("a cached file cannot be renamed", path, error.value());
    sync_folder(folder_);
  }

  static void write(const fs::path& path, const std::string& identity, const InputFile& remote, std::uint64_t bytes) {
    File file = File::create(path);
    const std::span<const std::byte> name = std::as_bytes(std::span(identity));
    Trailer trailer{.bytes = bytes, .name_bytes = identity.size()};
    file.reserve(bytes + identity.size() + sizeof trailer);
    std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, bytes)));
    for (std::uint64_t begin = 0; begin < bytes; begin += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, bytes - begin)));
      remote.read_at(piece, begin);
      trailer.checksum = crc32c(piece, trailer.checksum);
      file.write(piece);
    }
    trailer.checksum = crc32c(name, trailer.checksum);
    file.write(name);
    file.write(std::as_bytes(std::span(&trailer, 1)));
    file.sync();
    file.close();
  }

  // Removes the files that were not opened for the longest time until there is room; `more`: some even where there seems to be.
  void make_room(std::uint64_t bytes, bool more) {
    if (most_bytes_ == 0 && !more) return;
    const FileLock lock(folder_ / "room.lock");
    struct Kept {
      fs::path path;
      fs::file_time_type used;
      std::uint64_t bytes;
    };
    std::vector<Kept> all;
    std::uint64_t sum = 0;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
      const std::string name = entry.path().filename().string();
      std::error_code vanished;
      const std::uint64_t size = entry.file_size(vanished);
      if (vanished) continue;
      if (name.ends_with(".tmp")) sum += size;  // another one is fetching it
      if (!name.ends_with(ending)) continue;
      all.push_back({entry.path(), entry.last_write_time(vanished), size});
      sum += size;
    }
    std::ranges::sort(all, {}, &Kept::used);
    const std::uint64_t most = more ? (sum > bytes ? sum - bytes : 0) : most_bytes_ - std::min(bytes, most_bytes_);
    for (const Kept& kept : all) {
      if (sum <= most) break;
      if (fs::remove(kept.path, error)) sum -= kept.bytes;  // who has it open keeps it
    }
  }

  fs::path folder_;
  std::uint64_t most_bytes_;
  std::atomic<bool> told_ = false;
};

// Fetched when it is read, but for a few short reads at the beginning: who looks at the heads of many files does not want all
// of them.
class CachedInput final : public InputFile {
 public:
  CachedInput(std::unique_ptr<InputFile> remote, std::string identity, std::shared_ptr<FileCache> cache)
      : remote_(std::move(remote)), identity_(std::move(identity)), cache_(std::move(cache)), bytes_(remote_->size()) {}

  std::uint64_t size() const override { return bytes_; }
  std::string version() const override { return remote_->version(); }
  Location location() const override { return remote_->location(); }
  bool maps_from_disk() const override { return kept() != nullptr; }  // where the disk is full it does not

  void read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    const File* const file = is_passed_on(into.size()) ? nullptr : kept();
    if (file == nullptr) return remote_->read_at(into, offset);
    if (offset > bytes_ || into.size() > bytes_ - offset) {
      throw Error(
          {.code = ErrorCode::corrupt_file,
           .message = fmt::format("the file ends at byte {}, but {} bytes from {} on are needed", bytes_, into.size(), offset),
           .path = identity_});
    }
    file->read_at(into, offset);
  }

  std::shared_ptr<const std::byte> map() const override {
    const File* const file = kept();
    if (file == nullptr) return remote_->map();
    return bytes_ == 0 ? nullptr : file->map();
  }

 private:
  bool is_passed_on(std::size_t bytes) const {
    if (is_open_.load() || bytes > short_read || bytes > bytes_ / 4 || cache_->may_have(identity_)) return false;
    return num_passed_on_.fetch_add(1) < most_passed_on;
  }

  const File* kept() const {
    std::call_once(once_, [this] {
      file_ = cache_->open(identity_, *remote_);
      is_open_ = true;
    });
    return file_ ? &*file_ : nullptr;
  }

  std::unique_ptr<InputFile> remote_;
  std::string identity_;
  std::shared_ptr<FileCache> cache_;
  std::uint64_t bytes_;
  mutable std::once_flag once_;
  mutable std::atomic<bool> is_open_ = false;
  mutable std::atomic<int> num_passed_on_ = 0;
  mutable std::optional<File> file_;
};

class CachedFileSystem final : public FileSystem {
 public:
  CachedFileSystem(std::shared_ptr<FileSystem> files, const FileCacheOptions& options)
      : files_(std::move(files)), cache_(std::make_shared<FileCache>(options)) {}

  std::unique_ptr<InputFile> open(const Location& location) const override {
    auto remote = files_->open(location);
    const std::string version = remote->version();
    if (version.empty()) return remote;
    std::string identity = fmt::format("{}\n{}\n{}", location, remote->size(), version);
    return std::make_unique<CachedInput>(std::move(remote), std::move(identity), cache_);
  }

  std::unique_ptr<OutputFile> create(const Location& location) override { return files_->create(location); }
  std::unique_ptr<OutputFile> replace(const Location& location) override { return files_->replace(location); }
  bool is_object_store() const override { return files_->is_object_store(); }
  void create_folder(const Location& location) override { files_->create_folder(location); }
  void rename(const Location& from, const Location& to) override { files_->rename(from, to); }
  void sync_folder(const Location& location) override { files_->sync_folder(location); }
  void remove_all(const Location& location) override { files_->remove_all(location); }
  FileKind kind_of(const Location& location) const override { return files_->kind_of(location); }
  std::vector<FolderEntry> entries_of(const Location& folder) const override { return files_->entries_of(folder); }
  Location real(const Location& location) const override { return files_->real(location); }

 private:
  std::shared_ptr<FileSystem> files_;
  std::shared_ptr<FileCache> cache_;
};

}  // namespace

std::shared_ptr<FileSystem> cached_file_system(std::shared_ptr<FileSystem> files, const FileCacheOptions& options) {
  require(files != nullptr, "a cache needs a file system whose files it keeps");
  return std::make_shared<CachedFileSystem>(std::move(files), options);
}

}  // namespace trireme
