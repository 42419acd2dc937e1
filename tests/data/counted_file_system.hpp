#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::tests {

// The files of this machine under another scheme, which are read by requests that are counted.
class CountedFileSystem final : public FileSystem {
 public:
  explicit CountedFileSystem(std::chrono::milliseconds of_a_request = {}) : counts_(std::make_shared<Counts>(of_a_request)) {}

  std::unique_ptr<OutputFile> create(const Location& location) override { return real_->create(path_of(location)); }
  std::unique_ptr<InputFile> open(const Location& location) const override {
    return std::make_unique<CountedFile>(real_->open(path_of(location)), version, counts_);
  }
  void create_folder(const Location& location) override { real_->create_folder(path_of(location)); }
  void rename(const Location& from, const Location& to) override { real_->rename(path_of(from), path_of(to)); }
  void sync_folder(const Location& location) override { real_->sync_folder(path_of(location)); }
  void remove_all(const Location& location) override { real_->remove_all(path_of(location)); }
  FileKind kind_of(const Location& location) const override { return real_->kind_of(path_of(location)); }
  std::vector<FolderEntry> entries_of(const Location& folder) const override { return real_->entries_of(path_of(folder)); }

  int requests() const { return counts_->requests(); }
  int most_at_once() const { return counts_->most_at_once(); }
  void fail_from_now_on() { counts_->fails = true; }  // every request

  std::string version = {};  // of all files that are opened from now on

 private:
  class Counts {
   public:
    explicit Counts(std::chrono::milliseconds of_a_request) : of_a_request_(of_a_request) {}

    void read(const InputFile& file, std::span<std::byte> into, std::uint64_t offset) {
      count(1);
      if (fails) {
        count(-1);
        throw Error({.code = ErrorCode::io, .message = "the connection is gone"});
      }
      std::this_thread::sleep_for(of_a_request_);
      file.read_at(into, offset);
      count(-1);
    }
    int requests() const {
      const std::scoped_lock lock(mutex_);
      return requests_;
    }
    int most_at_once() const {
      const std::scoped_lock lock(mutex_);
      return most_at_once_;
    }

    std::atomic<bool> fails = false;

   private:
    void count(int more) {
      const std::scoped_lock lock(mutex_);
      requests_ += std::max(more, 0);
      at_once_ += more;
      most_at_once_ = std::max(most_at_once_, at_once_);
    }

    const std::chrono::milliseconds of_a_request_;
    mutable std::mutex mutex_;
    int requests_ = 0, at_once_ = 0, most_at_once_ = 0;
  };

  class CountedFile final : public InputFile {
   public:
    CountedFile(std::unique_ptr<InputFile> real, std::string version, std::shared_ptr<Counts> counts)
        : real_(std::move(real)), version_(std::move(version)), counts_(std::move(counts)) {}
    std::uint64_t size() const override { return real_->size(); }
    std::string version() const override { return version_; }
    void read_at(std::span<std::byte> into, std::uint64_t offset) const override { counts_->read(*real_, into, offset); }

   private:
    std::unique_ptr<InputFile> real_;
    std::string version_;
    std::shared_ptr<Counts> counts_;
  };

  static Location path_of(const Location& location) { return Location(std::string(location.after_scheme())); }

  std::shared_ptr<FileSystem> real_ = posix_file_system();
  std::shared_ptr<Counts> counts_;
};

}  // namespace trireme::tests
