#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trireme/files/file_system.hpp"

namespace trireme::tests {

struct KillPoint {
  std::int64_t call = 0;  // from 1 on; 0: none
  bool after = false;
};

// The real file system, which ends its process by SIGKILL at one of the calls. Operations with several steps count
// as several calls: a write is one call for its first half and one for the rest, a folder is removed file by file.
class KillingFileSystem final : public FileSystem {
 public:
  explicit KillingFileSystem(KillPoint point) : point_(point) {}

  std::unique_ptr<OutputFile> create(const Location& path) override;
  std::unique_ptr<InputFile> open(const Location& path) const override;
  void create_folder(const Location& path) override;
  void rename(const Location& from, const Location& to) override;
  void sync_folder(const Location& path) override;
  void remove_all(const Location& path) override;
  FileKind kind_of(const Location& path) const override;
  std::vector<FolderEntry> entries_of(const Location& folder) const override;

  std::int64_t calls() const { return calls_; }

 private:
  friend class KilledOutput;
  class Call;

  KillPoint point_;
  mutable std::atomic<std::int64_t> calls_ = 0;
  std::shared_ptr<FileSystem> real_ = posix_file_system();
};

}  // namespace trireme::tests
