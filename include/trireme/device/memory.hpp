#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace trireme::device {

inline constexpr std::size_t alignment = 64;  // of every block, in bytes: a cache line, a vector register

// Where memory comes from: the heap, a segment that the ranks of a node share, a GPU.
class MemoryResource {
 public:
  MemoryResource() = default;
  MemoryResource(const MemoryResource&) = delete;
  MemoryResource& operator=(const MemoryResource&) = delete;
  virtual ~MemoryResource() = default;

  // A block of at least `bytes`, aligned to `alignment`, not initialised. Throws Error{out_of_memory}.
  // A resource that ranks share is collective: all its ranks allocate in the same order with the same sizes.
  void* allocate(std::size_t bytes) { return do_allocate(bytes); }
  void deallocate(void* block, std::size_t bytes) noexcept { do_deallocate(block, bytes); }

  virtual std::string_view name() const noexcept = 0;  // "host", "shared segment"

 private:
  virtual void* do_allocate(std::size_t bytes) = 0;
  virtual void do_deallocate(void* block, std::size_t bytes) noexcept = 0;
};

struct MemoryStatistics {
  std::size_t in_use_bytes = 0;
  std::size_t peak_bytes = 0;    // highest in_use_bytes so far
  std::size_t cached_bytes = 0;  // held for reuse
};

// This thread's caching host memory: freed blocks are kept for the next allocation of a similar size, because a training
// step asks for the same sizes again and again. Blocks may be freed on any thread and outlive the one that made them.
std::shared_ptr<MemoryResource> host_memory();
MemoryStatistics host_memory_statistics();
void release_cached_host_memory();  // gives this thread's unused blocks back to the system

// One owned block; tensors share it.
class Storage {
 public:
  Storage(std::shared_ptr<MemoryResource> resource, std::size_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::shared_ptr<MemoryResource> resource_;
  std::size_t bytes_;
  void* data_;
};

}  // namespace trireme::device
