#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/device/device.hpp"

namespace trireme TRIREME_EXPORT {
namespace device {

inline constexpr std::size_t alignment = 64;  // of all blocks, in bytes: a cache line, an AVX-512 register

// A source of memory: the heap, a segment shared by the ranks of a node, or a GPU.
class MemoryResource {
 public:
  MemoryResource() = default;
  MemoryResource(const MemoryResource&) = delete;
  MemoryResource& operator=(const MemoryResource&) = delete;
  virtual ~MemoryResource() = default;

  // An uninitialized block of at least `bytes`, aligned to `alignment`. Throws Error{out_of_memory}.
  // For a shared segment the call is collective: all ranks of the segment must allocate in the same order with the same sizes.
  void* allocate(std::size_t bytes) { return do_allocate(bytes); }
  void deallocate(void* block, std::size_t bytes) noexcept { do_deallocate(block, bytes); }

  virtual std::string_view name() const noexcept = 0;     // "host", "shared segment", "cuda:0"
  virtual bool on_host() const noexcept { return true; }  // false: the blocks lie on a GPU

 private:
  virtual void* do_allocate(std::size_t bytes) = 0;
  virtual void do_deallocate(void* block, std::size_t bytes) noexcept = 0;
};

struct MemoryStatistics {
  std::size_t in_use_bytes = 0;
  std::size_t peak_bytes = 0;    // highest in_use_bytes so far
  std::size_t cached_bytes = 0;  // held for reuse
};

// This thread's caching allocators on the host and on its GPU. They keep freed blocks for later allocations of a similar size,
// because each training step needs the same sizes. On the host they hold at most 64 MiB or twice the peak in use, whichever is
// more. Blocks may be freed on any thread and may outlive the thread that allocated them. A freed block can be reused
// immediately. So if a stream other than the thread's stream uses a block, or if a GPU accesses the block as pinned memory,
// keep the block until this work is done.
std::shared_ptr<MemoryResource> host_memory();
std::shared_ptr<MemoryResource> cuda_memory();
MemoryStatistics host_memory_statistics();
MemoryStatistics cuda_memory_statistics();
void release_cached_host_memory();  // returns this thread's unused blocks to the system
void release_cached_cuda_memory();

// The caching allocator of page-locked host memory, which a GPU can access directly.
std::shared_ptr<MemoryResource> pinned_memory();

// Limits this thread to this fraction of its GPU's memory, in (0, 1], including the memory that the thread already holds.
void set_cuda_memory_fraction(double fraction);

template <typename D>
TRIREME_EXPORT std::shared_ptr<MemoryResource> memory_of();
template <>
inline std::shared_ptr<MemoryResource> memory_of<Cpu>() {
  return host_memory();
}
template <>
inline std::shared_ptr<MemoryResource> memory_of<Cuda>() {
  return cuda_memory();
}

// While an object of this class exists, blocks that this thread allocates count under `purpose`. Out-of-memory errors list the
// bytes per purpose.
class MemoryPurpose {
 public:
  explicit MemoryPurpose(std::string_view purpose);  // "parameters"
  ~MemoryPurpose();
  MemoryPurpose(const MemoryPurpose&) = delete;
  MemoryPurpose& operator=(const MemoryPurpose&) = delete;

 private:
  std::string previous_;
};

// Whether a Storage counts the writes to its block. If many owners share the block, each owner counts its own writes instead.
enum class Changes : std::uint8_t { counted, uncounted };

// An owned block, shared by tensors.
class Storage {
 public:
  Storage(std::shared_ptr<MemoryResource> resource, std::size_t bytes, Changes changes = Changes::counted);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

  // How often operations have written to the block. A backward pass uses this number to check that saved tensors are unchanged.
  std::uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void count_change() noexcept { version_.store(version() + change_, std::memory_order_relaxed); }

 private:
  std::shared_ptr<MemoryResource> resource_;
  std::size_t bytes_;
  void* data_;
  std::atomic<std::uint32_t> version_ = 0;
  std::uint32_t change_;  // 1, or 0 for Changes::uncounted
};

// Copy and fill memory on the host or on this thread's GPU. GPU work goes into the thread's stream; a copy from or to the host
// is complete when the call returns.
void copy_bytes(Cpu to, void* target, Cpu from, const void* source, std::size_t bytes);
void copy_bytes(Cuda to, void* target, Cpu from, const void* source, std::size_t bytes);
void copy_bytes(Cpu to, void* target, Cuda from, const void* source, std::size_t bytes);
void copy_bytes(Cuda to, void* target, Cuda from, const void* source, std::size_t bytes);
// Sets `count` elements of 1, 2, 4 or 8 bytes to *element, which lies on the host.
void fill(Cuda, void* target, const void* element, std::size_t element_bytes, std::size_t count);

}  // namespace device
}  // namespace trireme
