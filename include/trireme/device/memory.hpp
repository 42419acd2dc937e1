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

  virtual std::string_view name() const noexcept = 0;     // "host", "shared segment", "cuda:0"
  virtual bool on_host() const noexcept { return true; }  // otherwise its blocks are a GPU's

 private:
  virtual void* do_allocate(std::size_t bytes) = 0;
  virtual void do_deallocate(void* block, std::size_t bytes) noexcept = 0;
};

struct MemoryStatistics {
  std::size_t in_use_bytes = 0;
  std::size_t peak_bytes = 0;    // highest in_use_bytes so far
  std::size_t cached_bytes = 0;  // held for reuse
};

// This thread's caching memory on the host and on its GPU: freed blocks are kept for the next allocation of a similar size,
// because a training step asks for the same sizes again and again. On the host no more is held, in use or free, than 64 MiB or
// twice what was ever in use at once. Blocks may be freed on any thread and outlive the one that made them. A freed block goes
// to the next taker without waiting: who uses one on another stream than the thread's own, or has a GPU read or write pinned
// memory, must hold it until that is done.
std::shared_ptr<MemoryResource> host_memory();
std::shared_ptr<MemoryResource> cuda_memory();
MemoryStatistics host_memory_statistics();
MemoryStatistics cuda_memory_statistics();
void release_cached_host_memory();  // gives this thread's unused blocks back to the system
void release_cached_cuda_memory();

// Of host memory that a GPU reads and writes on its own (page-locked), kept like the others.
std::shared_ptr<MemoryResource> pinned_memory();

// What this thread may take of its GPU's memory, in (0, 1]; what it holds already counts.
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

// Blocks that are allocated in its scope, on this thread, are counted under `purpose`: an error for lack of memory lists
// what holds how much.
class MemoryPurpose {
 public:
  explicit MemoryPurpose(std::string_view purpose);  // "parameters"
  ~MemoryPurpose();
  MemoryPurpose(const MemoryPurpose&) = delete;
  MemoryPurpose& operator=(const MemoryPurpose&) = delete;

 private:
  std::string previous_;
};

// Whether a block knows how often it was written to. What many owners have a part of does not: each counts for itself.
enum class Changes : std::uint8_t { counted, uncounted };

// One owned block; tensors share it.
class Storage {
 public:
  Storage(std::shared_ptr<MemoryResource> resource, std::size_t bytes, Changes changes = Changes::counted);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

  // How often operations have written to it: a backward pass looks whether what it kept is still the same.
  std::uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void count_change() noexcept { version_.store(version() + change_, std::memory_order_relaxed); }

 private:
  std::shared_ptr<MemoryResource> resource_;
  std::size_t bytes_;
  void* data_;
  std::atomic<std::uint32_t> version_ = 0;
  std::uint32_t change_;  // 0: they are not counted
};

// Copies and fills of memory that may lie on this thread's GPU. Those that involve it go into its stream; a copy to or from
// the host's memory has been done when the call returns.
void copy_bytes(Cpu to, void* target, Cpu from, const void* source, std::size_t bytes);
void copy_bytes(Cuda to, void* target, Cpu from, const void* source, std::size_t bytes);
void copy_bytes(Cpu to, void* target, Cuda from, const void* source, std::size_t bytes);
void copy_bytes(Cuda to, void* target, Cuda from, const void* source, std::size_t bytes);
// `count` elements of 1, 2, 4 or 8 bytes, all equal to *element, which lies on the host.
void fill(Cuda, void* target, const void* element, std::size_t element_bytes, std::size_t count);

}  // namespace device
}  // namespace trireme
