#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace trireme::device {

// Blocks of memory that were allocated from the system and not freed. The system counts a page only after the first write to
// it, so it may have allocated more than there is.
class TakenBlocks {
 public:
  void add(void* block, std::size_t bytes);
  void remove(void* block) noexcept;
  std::size_t untouched();  // bytes on pages that were never written

 private:
  struct Block {
    std::size_t bytes;
    bool touched = false;  // whether all but the rounding was written; then it is not checked again
  };

  std::mutex mutex_;
  std::map<void*, Block> blocks_;
};

}  // namespace trireme::device
