#include "device/caching_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme::device {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t large_block = std::size_t{1} << 20;  // from this size on, blocks are recorded with size and purpose
constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();
constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

// Rounds sizes up so that similar requests share blocks: to 64 bytes up to a page, above that to 1/8 of the next lower power of
// two.
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

std::string& current_purpose() {
  thread_local std::string purpose = "activations and others";
  return purpose;
}

std::string in_mib(std::size_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 0x1p20); }

}  // namespace

CachingMemory::CachingMemory(std::unique_ptr<BlockSource> source) : CachingMemory(std::move(source), no_bound) {}
CachingMemory::CachingMemory(std::unique_ptr<BlockSource> source, std::size_t always_kept)
    : source_(std::move(source)), always_kept_(always_kept) {}
CachingMemory::~CachingMemory() { release_kept(); }

MemoryStatistics CachingMemory::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void CachingMemory::release() noexcept {
  const std::lock_guard lock(mutex_);
  release_kept();
}

void CachingMemory::set_limit(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

void CachingMemory::release_kept() noexcept {
  for (const auto& [size, blocks] : kept_) {
    for (const Kept& kept : blocks) source_->give_back(kept.block);
  }
  kept_.clear();
  statistics_.cached_bytes = 0;
}

void* CachingMemory::do_allocate(std::size_t bytes) {
  std::size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  void* block = take_kept(size);
  if (block == nullptr) block = take_from_source(size);
  statistics_.in_use_bytes += size;
  statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.in_use_bytes);
  if (size >= large_block) {
    std::size_t& held = held_for_[current_purpose()];
    held += size;
    large_blocks_.emplace(block, LargeBlock{.size = size, .held = &held});
  }
  return block;
}

void CachingMemory::do_deallocate(void* block, std::size_t bytes) noexcept {
  std::size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  if (size >= large_block) {
    const LargeBlock large = large_blocks_.extract(block).mapped();
    size = large.size;
    *large.held -= size;
  }
  kept_[size].push_back({.block = block, .freed = ++num_freed_});
  statistics_.in_use_bytes -= size;
  statistics_.cached_bytes += size;
}

void* CachingMemory::take_kept(std::size_t& size) {
  const std::size_t largest = size >= large_block ? 2 * size : size;
  auto found = kept_.lower_bound(size);
  while (found != kept_.end() && found->first < largest && found->second.empty()) ++found;
  if (found == kept_.end() || found->first > largest || found->second.empty()) return nullptr;
  size = found->first;
  void* block = found->second.back().block;
  found->second.pop_back();
  statistics_.cached_bytes -= size;
  return block;
}

void CachingMemory::give_back_oldest(std::size_t size) noexcept {
  const std::size_t needed = statistics_.in_use_bytes + size;
  const std::size_t bound = std::max(always_kept_, 2 * std::max(statistics_.peak_bytes, needed));
  const auto freed = [](const auto& kept) { return kept.second.empty() ? never : kept.second.front().freed; };
  while (statistics_.cached_bytes > 0 && needed + statistics_.cached_bytes > bound) {
    auto& [block_size, blocks] = *std::ranges::min_element(kept_, {}, freed);
    source_->give_back(blocks.front().block);
    blocks.erase(blocks.begin());
    statistics_.cached_bytes -= block_size;
  }
}

void* CachingMemory::take_from_source(std::size_t size) {
  give_back_oldest(size);
  const auto fits = [&] { return statistics_.in_use_bytes + statistics_.cached_bytes + size <= limit_; };
  if (fits()) {
    if (void* block = source_->take(size)) return block;
  }
  release_kept();
  if (fits()) {
    if (void* block = source_->take(size)) return block;
  }
  throw_out_of_memory(size);
}

void CachingMemory::throw_out_of_memory(std::size_t wanted) const {
  std::vector<std::pair<std::size_t, std::string_view>> holders;
  std::size_t small = statistics_.in_use_bytes;
  for (const auto& [purpose, bytes] : held_for_) {
    if (bytes > 0) holders.emplace_back(bytes, purpose);
    small -= bytes;
  }
  std::ranges::sort(holders, std::greater{});
  std::string held;
  for (const auto& [bytes, purpose] : holders) held += fmt::format("{}: {}, ", purpose, in_mib(bytes));
  held += fmt::format("blocks below 1 MiB: {}", in_mib(small));
  const bool limited = statistics_.in_use_bytes + wanted > limit_;
  throw Error({.code = ErrorCode::out_of_memory,
               .message = fmt::format("{} has no {} left{}", name(), in_mib(wanted),
                                      limited ? fmt::format(" below the limit of {}", in_mib(limit_)) : ""),
               .error_number = ENOMEM,
               .had = fmt::format("{} in use by this thread ({})", in_mib(statistics_.in_use_bytes), held),
               .hint = "use a smaller batch, or more micro-batches"});
}

MemoryPurpose::MemoryPurpose(std::string_view purpose) : previous_(std::exchange(current_purpose(), std::string(purpose))) {}
MemoryPurpose::~MemoryPurpose() { current_purpose() = std::move(previous_); }

}  // namespace trireme::device
