#include "device/fake_gpu.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>

namespace trireme::test {
namespace {

struct Block {
  std::byte* on_host;
  std::size_t bytes;
};

std::mutex mutex;
std::map<const std::byte*, Block> blocks;  // by their addresses on the GPU

// The block that holds the address.
auto find(const void* data) {
  const auto* address = static_cast<const std::byte*>(data);
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return blocks.end();
  const auto found = std::prev(after);
  return address < found->first + found->second.bytes ? found : blocks.end();
}

// The same pages twice: at an address that may not be touched and at one that may.
class FakeGpuMemory final : public device::MemoryResource {
 public:
  std::string_view name() const noexcept override { return "fake GPU"; }
  bool on_host() const noexcept override { return false; }

 private:
  void* do_allocate(std::size_t wanted) override {
    const std::size_t bytes = std::max<std::size_t>(wanted, 1);
    const int file = memfd_create("fake GPU", 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) throw std::runtime_error("no memory for a fake GPU");
    void* gpu = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
    void* host = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (gpu == MAP_FAILED || host == MAP_FAILED) throw std::runtime_error("no addresses for a fake GPU");
    const std::lock_guard lock(mutex);
    blocks[static_cast<const std::byte*>(gpu)] = {static_cast<std::byte*>(host), bytes};
    return gpu;
  }
  void do_deallocate(void* gpu, std::size_t) noexcept override {
    const std::lock_guard lock(mutex);
    const auto block = blocks.extract(static_cast<const std::byte*>(gpu));
    munmap(block.mapped().on_host, block.mapped().bytes);
    munmap(gpu, block.mapped().bytes);
  }
};

}  // namespace

std::shared_ptr<device::MemoryResource> fake_gpu_memory() {
  static const auto memory = std::make_shared<FakeGpuMemory>();
  return memory;
}

bool is_on_fake_gpu(const void* data) {
  const std::lock_guard lock(mutex);
  return find(data) != blocks.end();
}

std::byte* reach_fake_gpu(const void* data) {
  const std::lock_guard lock(mutex);
  const auto block = find(data);
  if (block == blocks.end()) throw std::runtime_error("that is no memory of a fake GPU");
  return block->second.on_host + (static_cast<const std::byte*>(data) - block->first);
}

}  // namespace trireme::test
