#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "trireme/files/file_system.hpp"

namespace trireme::test {

// The exception of all calls after the machine has lost its power.
struct PowerLost : std::runtime_error {
  PowerLost() : std::runtime_error("the power is gone") {}
};

using ReadObserver = std::function<void(std::span<std::byte> bytes)>;

// A file system in memory, for locations of any scheme. When the power fails, it loses what was not synced, each piece by
// chance: pages of a file that were written since its sync, and names that were created, renamed or removed in a folder since
// its sync. As strict as POSIX allows. A write that fails has written half.
class SimulatedFileSystem final : public FileSystem {
 public:
  SimulatedFileSystem();

  std::unique_ptr<OutputFile> create(const Location& path) override;
  std::unique_ptr<InputFile> open(const Location& path) const override;
  void create_folder(const Location& path) override;
  void rename(const Location& from, const Location& to) override;
  void sync_folder(const Location& path) override;
  void remove_all(const Location& path) override;
  FileKind kind_of(const Location& path) const override;
  std::vector<FolderEntry> entries_of(const Location& folder) const override;

  // Calls that change something are counted from 1.
  std::int64_t calls() const;
  void lose_power_at(std::int64_t call) { power_lost_at_ = call; }                        // that call and all later ones
  void fail_at(std::int64_t call, int error_number) { failing_ = {call, error_number}; }  // that call alone
  const std::string& failed_call() const { return failed_call_; }

  // The state when the power is back. keep: the probability that an unsynced page or name is kept.
  std::shared_ptr<SimulatedFileSystem> after_power_loss(double keep, std::uint64_t seed) const;

  // Sees what every call has read of files opened from now on, and may damage it; from several threads at a time.
  void observe_reads(ReadObserver observer) { observer_ = std::move(observer); }

  // Changes files on purpose.
  std::vector<std::byte>& content(const Location& path);
  std::vector<Location> files() const;

 private:
  friend class SimulatedOutput;
  struct Node;
  struct Change {  // of the names in a folder, since it was synced
    std::string removed;
    std::string added;
    std::shared_ptr<Node> node;
  };
  struct Node {
    bool folder = false;
    std::vector<std::byte> content;
    std::vector<std::byte> synced_content;
    std::map<std::string, std::shared_ptr<Node>> names;
    std::map<std::string, std::shared_ptr<Node>> synced_names;
    std::vector<Change> changes;
  };

  std::shared_ptr<Node> find(const Location& path) const;
  std::shared_ptr<Node> folder_at(const Location& path) const;
  void change(const Location& path);  // counts a call; throws where it is to fail
  static void apply(Node& folder, const Change& change);
  static std::shared_ptr<Node> survivor(const Node& node, double keep, std::mt19937_64& random);

  std::shared_ptr<Node> root_;
  mutable std::recursive_mutex mutex_;
  std::int64_t calls_ = 0;
  std::int64_t power_lost_at_ = 0;
  std::pair<std::int64_t, int> failing_{};
  std::string failed_call_;
  ReadObserver observer_;
};

}  // namespace trireme::test
