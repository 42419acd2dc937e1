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

// Where caching memory gets its blocks from.
class BlockSource {
 public:
  virtual ~BlockSource() = default;

  virtual void* take(std::size_t bytes) = 0;  // null where there is not enough
  virtual void give_back(void* block) noexcept = 0;
  virtual std::string_view name() const noexcept = 0;
  virtual bool on_host() const noexcept { return true; }
};

// Keeps freed blocks for the next request of the same rounded size; from 1 MiB on a request also takes a free block of up to
// twice its size. What it cannot get it tries again after it gave back all it keeps.
class CachingMemory final : public MemoryResource {
 public:
  explicit CachingMemory(std::unique_ptr<BlockSource> source);

  // Holds, in use or free, no more than `always_kept` bytes or twice what was ever in use at once, whichever is more: before it
  // takes more from the source it gives back the blocks that have been free for longest.
  CachingMemory(std::unique_ptr<BlockSource> source, std::size_t always_kept);
  ~CachingMemory() override;

  std::string_view name() const noexcept override { return source_->name(); }
  bool on_host() const noexcept override { return source_->on_host(); }
  MemoryStatistics statistics() const;
  void release() noexcept;                     // gives unused blocks back to the source
  void set_limit(std::size_t bytes) noexcept;  // of what is taken from the source, in use or kept

 private:
  void* do_allocate(std::size_t bytes) override;
  void do_deallocate(void* block, std::size_t bytes) noexcept override;

  struct Kept {
    void* block;
    std::uint64_t freed;  // when, as a count of blocks that were freed
  };
  struct LargeBlock {
    std::size_t size;
    std::size_t* held;  // its purpose's place in held_for_
  };

  void* take_kept(std::size_t& size);  // becomes that of the block
  void* take_from_source(std::size_t size);
  void give_back_oldest(std::size_t size) noexcept;  // until another block of this size is within the bound
  void release_kept() noexcept;
  [[noreturn]] void throw_out_of_memory(std::size_t wanted) const;

  const std::unique_ptr<BlockSource> source_;
  mutable std::mutex mutex_;
  std::size_t always_kept_;
  std::map<std::size_t, std::vector<Kept>> kept_;  // by size, in the order in which they were freed
  std::uint64_t num_freed_ = 0;
  MemoryStatistics statistics_;
  std::size_t limit_ = std::numeric_limits<std::size_t>::max();
  std::map<std::string, std::size_t> held_for_;               // bytes of large blocks in use, by their purpose
  std::unordered_map<const void*, LargeBlock> large_blocks_;  // that are in use
};

}  // namespace trireme::device
