#include "trireme/device/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "device/caching_memory.hpp"

namespace trireme::device {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t always_kept = std::size_t{64} << 20;  // by each thread

class HostBlocks final : public BlockSource {
 public:
  void* take(std::size_t bytes) override {
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
