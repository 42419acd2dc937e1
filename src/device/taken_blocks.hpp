#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace trireme::device {

// Blocks of memory that were taken from the system and are not given back. The system counts their pages once they are written
// to, and may have promised the same ones to several.
class TakenBlocks {
 public:
  void add(void* block, std::size_t bytes);
  void remove(void* block) noexcept;
  std::size_t untouched();  // bytes whose pages nobody has touched yet

 private:
  struct Block {
    std::size_t bytes;
    bool touched = false;  // but for what rounding up has added; such a one is not looked at again
  };

  std::mutex mutex_;
  std::map<void*, Block> blocks_;
};

}  // namespace trireme::device
