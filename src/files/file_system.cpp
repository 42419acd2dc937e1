#include "trireme/files/file_system.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "files/system_error.hpp"
#include "trireme/files/file.hpp"

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

 private:
  File file_;
};

void check(const std::error_code& error, const char* message, const fs::path& path) {
  if (error) throw_system_error(message, path, error.value());
}

class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const Path& path) override { return std::make_unique<PosixOutput>(File::create(path)); }
  std::unique_ptr<InputFile> open(const Path& path) const override { return std::make_unique<PosixInput>(File::open(path)); }

  void create_folder(const Path& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    check(error, "the folder cannot be created", path);
  }
  void rename(const Path& from, const Path& to) override {
    std::error_code error;
    fs::rename(from, to, error);
    if (error) throw_system_error("it cannot be renamed to " + to.string(), from, error.value());
  }
  void sync_folder(const Path& path) override { trireme::sync_folder(path); }
  void remove_all(const Path& path) override {
    std::error_code error;
    fs::remove_all(path, error);
    check(error, "it cannot be removed", path);
  }
  bool exists(const Path& path) const override {
    std::error_code error;
    const bool found = fs::exists(path, error);
    check(error, "it cannot be looked for", path);
    return found;
  }
  std::vector<std::string> names_in(const Path& folder) const override {
    std::vector<std::string> names;
    if (!exists(folder)) return names;
    std::error_code error;
    for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    check(error, "the folder cannot be read", folder);
    std::ranges::sort(names);
    return names;
  }
};

}  // namespace

std::shared_ptr<FileSystem> posix_file_system() {
  static const auto system = std::make_shared<PosixFileSystem>();
  return system;
}

}  // namespace trireme
