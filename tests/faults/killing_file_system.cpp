#include "faults/killing_file_system.hpp"

#include <signal.h>

#include <utility>

namespace trireme::tests {

class KillingFileSystem::Call {
 public:
  explicit Call(const KillingFileSystem& system) : point_(system.point_), chosen_(++system.calls_ == point_.call) {
    if (chosen_ && !point_.after) raise(SIGKILL);
  }
  ~Call() {
    if (chosen_ && point_.after) raise(SIGKILL);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  KillPoint point_;
  bool chosen_;
};

class KilledOutput final : public OutputFile {
 public:
  KilledOutput(const KillingFileSystem& system, std::unique_ptr<OutputFile> real) : system_(system), real_(std::move(real)) {}

  void reserve(std::uint64_t bytes) override {
    const KillingFileSystem::Call call(system_);
    real_->reserve(bytes);
  }
  void write(std::span<const std::byte> bytes) override {
    const std::size_t half = bytes.size() / 2;
    for (const auto part : {bytes.first(half), bytes.subspan(half)}) {
      const KillingFileSystem::Call call(system_);
      real_->write(part);
    }
  }
  void sync() override {
    const KillingFileSystem::Call call(system_);
    real_->sync();
  }
  void close() override {
    const KillingFileSystem::Call call(system_);
    real_->close();
  }

 private:
  const KillingFileSystem& system_;
  std::unique_ptr<OutputFile> real_;
};

std::unique_ptr<OutputFile> KillingFileSystem::create(const Location& path) {
  const Call call(*this);
  return std::make_unique<KilledOutput>(*this, real_->create(path));
}

std::unique_ptr<InputFile> KillingFileSystem::open(const Location& path) const {
  const Call call(*this);
  return real_->open(path);
}

void KillingFileSystem::create_folder(const Location& path) {
  const Call call(*this);
  real_->create_folder(path);
}

void KillingFileSystem::rename(const Location& from, const Location& to) {
  const Call call(*this);
  real_->rename(from, to);
}

void KillingFileSystem::sync_folder(const Location& path) {
  const Call call(*this);
  real_->sync_folder(path);
}

void KillingFileSystem::remove_all(const Location& path) {
  if (is_folder(path)) {
    for (const std::string& name : real_->names_in(path)) remove_all(path / name);
  }
  const Call call(*this);
  real_->remove_all(path);
}

FileKind KillingFileSystem::kind_of(const Location& path) const {
  const Call call(*this);
  return real_->kind_of(path);
}

std::vector<FolderEntry> KillingFileSystem::entries_of(const Location& folder) const {
  const Call call(*this);
  return real_->entries_of(folder);
}

}  // namespace trireme::tests
