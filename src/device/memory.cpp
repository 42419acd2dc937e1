#include "trireme/device/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme::device {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t huge_page = std::size_t{2} << 20;

// Sizes are rounded so that similar requests share blocks: to 64 bytes below a page, to 1/8 of the next lower power of two
// above.
std::size_t rounded(std::size_t bytes) {
  bytes = std::max(bytes, alignment);
  std::size_t step = alignment;
  if (bytes > page) {
    std::size_t power = page;
    while (power * 2 <= bytes) power *= 2;
    step = power / 8;
  }
  return (bytes + step - 1) / step * step;
}

class CachingHostMemory final : public MemoryResource {
 public:
  ~CachingHostMemory() override { release(); }

  std::string_view name() const noexcept override { return "host"; }

  void release() noexcept {
    const std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : free_) {
      for (void* block : blocks) std::free(block);
    }
    free_.clear();
    statistics_.cached_bytes = 0;
  }

  MemoryStatistics statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  void* do_allocate(std::size_t bytes) override {
    const std::size_t size = rounded(bytes);
    const std::lock_guard lock(mutex_);
    void* block = take(size);
    if (block == nullptr) block = allocate_from_system(size);
    statistics_.in_use_bytes += size;
    statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.in_use_bytes);
    return block;
  }

  void do_deallocate(void* block, std::size_t bytes) noexcept override {
    const std::size_t size = rounded(bytes);
    const std::lock_guard lock(mutex_);
    free_[size].push_back(block);
    statistics_.in_use_bytes -= size;
    statistics_.cached_bytes += size;
  }

  void* take(std::size_t size) {
    const auto found = free_.find(size);
    if (found == free_.end() || found->second.empty()) return nullptr;
    void* block = found->second.back();
    found->second.pop_back();
    statistics_.cached_bytes -= size;
    return block;
  }

  static void* allocate_from_system(std::size_t size) {
    void* block = nullptr;
    const bool large = size >= huge_page;
    if (posix_memalign(&block, large ? huge_page : alignment, size) != 0) {
      throw Error({.code = ErrorCode::out_of_memory,
                   .message = fmt::format("the host has no {} bytes left", size),
                   .error_number = ENOMEM,
                   .hint = "use a smaller batch, or more micro-batches"});
    }
    if (large) madvise(block, size, MADV_HUGEPAGE);
    return block;
  }

  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;
  MemoryStatistics statistics_;
};

const std::shared_ptr<CachingHostMemory>& memory_of_this_thread() {
  thread_local const auto memory = std::make_shared<CachingHostMemory>();
  return memory;
}

}  // namespace

std::shared_ptr<MemoryResource> host_memory() { return memory_of_this_thread(); }
MemoryStatistics host_memory_statistics() { return memory_of_this_thread()->statistics(); }
void release_cached_host_memory() { memory_of_this_thread()->release(); }

Storage::Storage(std::shared_ptr<MemoryResource> resource, std::size_t bytes)
    : resource_(std::move(resource)), bytes_(bytes), data_(resource_->allocate(bytes)) {}

Storage::~Storage() { resource_->deallocate(data_, bytes_); }

}  // namespace trireme::device
