#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/files/file_system.hpp"

namespace trireme::data {

// A file of which ranges are read: as memory that is mapped where it lies on this machine's disk, by a request each elsewhere.
// What is mapped holds no descriptor.
class RangedFile final : public InputFile {
 public:
  explicit RangedFile(const Location& location);

  std::uint64_t size() const override { return size_; }
  std::string version() const override { return version_; }
  Location location() const override { return location_; }

  // For heads: of a file that a cache has not fetched, short ones at first fetch their own bytes alone.
  void read_at(std::span<std::byte> into, std::uint64_t offset) const override;
  std::shared_ptr<const std::byte> map() const override { return range(0, static_cast<std::size_t>(size_)); }

  // The whole file, for as long as this lives. Null: it lies elsewhere, or is empty.
  const std::byte* mapped() const;

  // Bytes [begin, begin + count), which the file has to have. The memory outlives this.
  std::shared_ptr<const std::byte> range(std::uint64_t begin, std::size_t count) const;

 private:
  std::shared_ptr<const InputFile> file() const;
  void close() const;

  Location location_;
  mutable std::mutex mutex_;                       // guards the next
  mutable std::shared_ptr<const InputFile> file_;  // null: it is mapped or empty
  std::uint64_t size_;
  std::string version_;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const std::byte> mapped_;
  mutable std::atomic<const std::byte*> memory_{nullptr};  // of mapped_, once it is
};

// A file that is read from its beginning on, with gaps: a few bytes here and there.
class ByteWindow {
 public:
  explicit ByteWindow(const RangedFile& file, std::size_t bytes) : file_(file), least_(bytes) {}

  // Valid until the next call.
  std::span<const std::byte> bytes(std::uint64_t begin, std::size_t count);

 private:
  const RangedFile& file_;
  std::size_t least_;  // of a request
  std::uint64_t begin_ = 0;
  std::size_t size_ = 0;
  std::shared_ptr<const std::byte> memory_;
};

// Files that are opened when they are asked for. The last few hundred stay open: a process may not map any number of them.
class OpenFiles {
 public:
  explicit OpenFiles(std::vector<Location> locations) : locations_(std::move(locations)), slots_(locations_.size()) {}

  const std::vector<Location>& locations() const { return locations_; }

  // Both throw Error{corrupt_file} where the file has another size or version than when it was opened first.
  std::shared_ptr<const RangedFile> open(std::size_t index) const;  // to look at it: it does not stay open
  std::shared_ptr<const RangedFile> file(std::size_t index) const;  // valid as long as this

 private:
  struct Seen {
    std::uint64_t bytes;
    std::uint64_t version;  // its digest
  };
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const RangedFile> file;
    std::optional<Seen> seen;                       // when it was opened first
    std::atomic<const RangedFile*> stays{nullptr};  // where there are so few files that none is closed
  };
  std::shared_ptr<const RangedFile> open(std::size_t index, Slot& slot) const;
  void close_oldest(std::size_t opened) const;

  std::vector<Location> locations_;
  mutable std::vector<Slot> slots_;
  mutable std::mutex mutex_;               // guards the next
  mutable std::deque<std::size_t> order_;  // in which those that are open were opened
};

}  // namespace trireme::data
