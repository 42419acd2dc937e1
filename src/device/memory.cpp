#include "trireme/device/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "device/available_memory.hpp"
#include "device/caching_memory.hpp"
#include "device/taken_blocks.hpp"

namespace trireme::device {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t always_kept = std::size_t{64} << 20;  // per thread

// Never destroyed: threads may give blocks back while the process ends.
TakenBlocks& taken_blocks() {
  static TakenBlocks& blocks = *new TakenBlocks;
  return blocks;
}

// Linux allocates more memory than there is and kills a process when it writes to it. So memory that is allocated but not yet
// written counts as used here.
bool is_available(std::size_t bytes) {
  constexpr std::size_t unchecked_at_most = std::size_t{64} << 20;  // by all threads together; a check takes 0.1 ms
  constexpr std::size_t of_others = std::size_t{16} << 20;          // reserve for other allocations in the meantime
  static std::atomic<std::size_t> unchecked = 0;
  static std::atomic<std::size_t> bound = 0;  // 0, so the first call checks
  if (unchecked.fetch_add(bytes, std::memory_order_relaxed) + bytes < bound.load(std::memory_order_relaxed)) return true;
  unchecked.store(0, std::memory_order_relaxed);
  const std::size_t available = available_host_memory();
  const std::size_t wanted = bytes + taken_blocks().untouched() + of_others;
  bound.store(available > wanted ? std::min(unchecked_at_most, (available - wanted) / 8) : 0, std::memory_order_relaxed);
  return wanted <= available;
}

class HostBlocks final : public BlockSource {
 public:
  // The lock lets each thread that takes a large block see the blocks that others got.
  void* take(std::size_t bytes) override {
    static std::mutex one_at_a_time;
    const bool large = bytes >= huge_page;
    const auto lock = large ? std::unique_lock(one_at_a_time) : std::unique_lock<std::mutex>();
    if (!is_available(bytes)) return nullptr;
    void* block = nullptr;
    if (posix_memalign(&block, large ? huge_page : alignment, bytes) != 0) return nullptr;
    if (large) {
      madvise(block, bytes, MADV_HUGEPAGE);
      taken_blocks().add(block, bytes);
    }
    return block;
  }
  void give_back(void* block) noexcept override {
    taken_blocks().remove(block);
    std::free(block);
  }
  std::string_view name() const noexcept override { return "host"; }
};

const std::shared_ptr<CachingMemory>& memory_of_this_thread() {
  thread_local const auto memory = std::make_shared<CachingMemory>(std::make_unique<HostBlocks>(), always_kept);
  return memory;
}

}  // namespace

std::shared_ptr<MemoryResource> host_memory() { return memory_of_this_thread(); }
MemoryStatistics host_memory_statistics() { return memory_of_this_thread()->statistics(); }
void release_cached_host_memory() { memory_of_this_thread()->release(); }

Storage::Storage(std::shared_ptr<MemoryResource> resource, std::size_t bytes, Changes changes)
    : resource_(std::move(resource)),
      bytes_(bytes),
      data_(resource_->allocate(bytes)),
      change_(changes == Changes::counted ? 1 : 0) {}

Storage::~Storage() { resource_->deallocate(data_, bytes_); }

void copy_bytes(Cpu, void* target, Cpu, const void* source, std::size_t bytes) {
  if (bytes > 0) std::memcpy(target, source, bytes);
}

}  // namespace trireme::device
