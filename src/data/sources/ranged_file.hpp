#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "trireme/files/file_system.hpp"

namespace trireme::data {

// A file of which ranges are read: as memory that is mapped where it is this machine's, by a request each elsewhere.
class RangedFile {
 public:
  explicit RangedFile(const Location& location);

  std::uint64_t size() const { return size_; }

  // Bytes [begin, begin + count), which the file has to have. The memory outlives this.
  std::shared_ptr<const std::byte> range(std::uint64_t begin, std::size_t count) const;

 private:
  std::unique_ptr<InputFile> file_;
  std::shared_ptr<const std::byte> mapped_;
  std::uint64_t size_;
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
  explicit OpenFiles(std::vector<Location> locations) : locations_(std::move(locations)) {}

  const std::vector<Location>& locations() const { return locations_; }
  std::shared_ptr<const RangedFile> file(std::size_t index) const;

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const RangedFile> file;
  };
  std::shared_ptr<Slot> slot(std::size_t index) const;

  std::vector<Location> locations_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::size_t, std::shared_ptr<Slot>> slots_;
  mutable std::deque<std::size_t> order_;  // in which they were opened
};

}  // namespace trireme::data
