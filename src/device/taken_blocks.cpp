#include "device/taken_blocks.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace trireme::device {
namespace {

// The bytes of a page-aligned block that are in physical memory; all of them where the system does not tell.
std::size_t bytes_in_memory(void* block, std::size_t bytes, std::size_t page_bytes) {
  constexpr std::size_t most_pages = std::size_t{1} << 18;  // per call of mincore()
  std::vector<unsigned char> in_memory;
  std::size_t pages = 0;
  for (std::size_t begin = 0; begin < bytes; begin += most_pages * page_bytes) {
    const std::size_t length = std::min(bytes - begin, most_pages * page_bytes);
    in_memory.assign((length + page_bytes - 1) / page_bytes, 0);
    if (mincore(static_cast<std::byte*>(block) + begin, length, in_memory.data()) != 0) return bytes;
    pages += static_cast<std::size_t>(std::ranges::count_if(in_memory, [](unsigned char state) { return (state & 1) != 0; }));
  }
  return std::min(bytes, pages * page_bytes);
}

}  // namespace

void TakenBlocks::add(void* block, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  blocks_.insert_or_assign(block, Block{.bytes = bytes});
}

void TakenBlocks::remove(void* block) noexcept {
  const std::lock_guard lock(mutex_);
  blocks_.erase(block);
}

std::size_t TakenBlocks::untouched() {
  static const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::lock_guard lock(mutex_);
  std::size_t untouched = 0;
  for (auto& [address, block] : blocks_) {
    if (block.touched) continue;
    const std::size_t touched = bytes_in_memory(address, block.bytes, page_bytes);
    block.touched = touched / 7 * 8 >= block.bytes;  // the rounding of sizes, less than an eighth, may stay untouched
    if (!block.touched) untouched += block.bytes - touched;
  }
  return untouched;
}

}  // namespace trireme::device
