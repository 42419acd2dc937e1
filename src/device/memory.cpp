#include "trireme/device/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "device/available_memory.hpp"
#include "device/caching_memory.hpp"

namespace trireme::device {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t always_kept = std::size_t{64} << 20;  // by each thread

// Linux gives addresses freely, and kills a process when it writes to more than there is.
bool is_available(std::size_t bytes) {
  constexpr std::size_t unchecked_at_most = std::size_t{64} << 20;  // by all threads; looking costs 0.1 ms
  static std::atomic<std::size_t> unchecked = 0;
  if (unchecked.fetch_add(bytes, std::memory_order_relaxed) + bytes < unchecked_at_most) return true;
  unchecked.store(0, std::memory_order_relaxed);
  return bytes <= available_host_memory();
}

class HostBlocks final : public BlockSource {
 public:
  void* take(std::size_t bytes) override {
    if (!is_available(bytes)) return nullptr;
    void* block = nullptr;
    const bool large = bytes >= huge_page;
    if (posix_memalign(&block, large ? huge_page : alignment, bytes) != 0) return nullptr;
    if (large) madvise(block, bytes, MADV_HUGEPAGE);
    return block;
  }
  void give_back(void* block) noexcept override { std::free(block); }
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

Storage::Storage(std::shared_ptr<MemoryResource> resource, std::size_t bytes)
    : resource_(std::move(resource)), bytes_(bytes), data_(resource_->allocate(bytes)) {}

Storage::~Storage() { resource_->deallocate(data_, bytes_); }

void copy_bytes(Cpu, void* target, Cpu, const void* source, std::size_t bytes) {
  if (bytes > 0) std::memcpy(target, source, bytes);
}

}  // namespace trireme::device
