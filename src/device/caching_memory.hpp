#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trireme/device/memory.hpp"

namespace trireme::device {

// The source of the blocks of a CachingMemory.
class BlockSource {
 public:
  virtual ~BlockSource() = default;

  virtual void* take(std::size_t bytes) = 0;  // null if there is not enough memory
  virtual void give_back(void* block) noexcept = 0;
  virtual std::string_view name() const noexcept = 0;
  virtual bool on_host() const noexcept { return true; }
};

// Caches freed blocks for the next request of the same rounded size; from 1 MiB on a request may also take a free block of up
// to twice its size. When the source has no memory left, it returns all cached blocks and tries again.
class CachingMemory final : public MemoryResource {
 public:
  explicit CachingMemory(std::unique_ptr<BlockSource> source);

  // Limits the bytes in use and cached to `always_kept` or twice the peak in use, whichever is more: before it takes more from
  // the source, it returns the blocks that have been free for longest.
  CachingMemory(std::unique_ptr<BlockSource> source, std::size_t always_kept);
  ~CachingMemory() override;

  std::string_view name() const noexcept override { return source_->name(); }
  bool on_host() const noexcept override { return source_->on_host(); }
  MemoryStatistics statistics() const;
  void release() noexcept;                     // returns unused blocks to the source
  void set_limit(std::size_t bytes) noexcept;  // of the bytes in use and cached

 private:
  void* do_allocate(std::size_t bytes) override;
  void do_deallocate(void* block, std::size_t bytes) noexcept override;

  struct Kept {
    void* block;
    std::uint64_t freed;  // time, as the number of blocks freed before
  };
  struct LargeBlock {
    std::size_t size;
    std::size_t* held;  // the value in held_for_ of its purpose
  };

  void* take_kept(std::size_t& size);  // sets `size` to that of the block
  void* take_from_source(std::size_t size);
  void give_back_oldest(std::size_t size) noexcept;  // until the bound allows another block of this size
  void release_kept() noexcept;
  [[noreturn]] void throw_out_of_memory(std::size_t wanted) const;

  const std::unique_ptr<BlockSource> source_;
  mutable std::mutex mutex_;
  std::size_t always_kept_;
  std::map<std::size_t, std::vector<Kept>> kept_;  // by size, in the order of freeing
  std::uint64_t num_freed_ = 0;
  MemoryStatistics statistics_;
  std::size_t limit_ = std::numeric_limits<std::size_t>::max();
  std::map<std::string, std::size_t> held_for_;               // bytes of large blocks in use, by purpose
  std::unordered_map<const void*, LargeBlock> large_blocks_;  // large blocks in use
};

}  // namespace trireme::device
