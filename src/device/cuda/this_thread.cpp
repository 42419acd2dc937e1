#include "device/cuda/this_thread.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "device/cuda/check.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/device/graph.hpp"

namespace trireme::device {
namespace {

// Null if there is not enough memory. Throws other errors, also of earlier kernels.
void* block_or_null(cudaError_t status, void* block, std::string_view call) {
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check_cuda(status, call);
  return block;
}

// Lets this thread allocate and free memory while it captures a graph, which CUDA forbids by default. This is safe because the
// graph is launched later, and its memory is not freed before the launch has ended.
class MemoryCallsAllowed {
 public:
  MemoryCallsAllowed() { exchange(); }
  ~MemoryCallsAllowed() { exchange(); }
  MemoryCallsAllowed(const MemoryCallsAllowed&) = delete;
  MemoryCallsAllowed& operator=(const MemoryCallsAllowed&) = delete;

 private:
  void exchange() { ignore_cuda(cudaThreadExchangeStreamCaptureMode(&mode_)); }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

class CudaBlocks final : public BlockSource {
 public:
  explicit CudaBlocks(int device) : device_(device), name_(fmt::format("cuda:{}", device)) {}

  void* take(std::size_t bytes) override {
    const MemoryCallsAllowed allowed;
    void* block = nullptr;
    check_cuda(cudaSetDevice(device_), "cudaSetDevice");
    const cudaError_t status = cudaMalloc(&block, bytes);
    return block_or_null(status, block, "cudaMalloc");
  }
  void give_back(void* block) noexcept override {
    const MemoryCallsAllowed allowed;
    ignore_cuda(cudaFree(block));
  }
  std::string_view name() const noexcept override { return name_; }
  bool on_host() const noexcept override { return false; }

 private:
  int device_;
  std::string name_;
};

class PinnedBlocks final : public BlockSource {
 public:
  void* take(std::size_t bytes) override {
    void* block = nullptr;
    const cudaError_t status = cudaHostAlloc(&block, bytes, cudaHostAllocPortable);
    return block_or_null(status, block, "cudaHostAlloc");
  }
  void give_back(void* block) noexcept override { ignore_cuda(cudaFreeHost(block)); }
  std::string_view name() const noexcept override { return "pinned host"; }
};

}  // namespace

ThisThread& this_thread() {
  thread_local ThisThread thread;
  return thread;
}

void ThisThread::choose(int device) {
  require(!begun_ || device == device_, "this thread already uses GPU {}; choose GPU {} before its first tensor", device_,
          device);
  device_ = device;
  begin();
}

void ThisThread::begin() {
  if (begun_) return;
  require_cuda();
  check_cuda(cudaSetDevice(device_), "cudaSetDevice");
  begun_ = true;
}

Stream& ThisThread::stream() {
  if (!stream_) stream_.emplace();
  return *stream_;
}

const std::shared_ptr<CachingMemory>& ThisThread::memory() {
  if (graph_memory_) return graph_memory_;
  if (!memory_) {
    begin();
    memory_ = std::make_shared<CachingMemory>(std::make_unique<CudaBlocks>(device_));
  }
  return memory_;
}

const std::shared_ptr<CachingMemory>& ThisThread::pinned_memory() {
  if (!pinned_memory_) {
    begin();
    pinned_memory_ = std::make_shared<CachingMemory>(std::make_unique<PinnedBlocks>());
  }
  return pinned_memory_;
}

std::shared_ptr<MemoryResource> cuda_memory() { return this_thread().memory(); }
std::shared_ptr<MemoryResource> pinned_memory() { return this_thread().pinned_memory(); }
MemoryStatistics cuda_memory_statistics() { return this_thread().memory()->statistics(); }
void release_cached_cuda_memory() {
  require_not_capturing("giving back a GPU's memory");
  this_thread().memory()->release();
}

void set_cuda_memory_fraction(double fraction) {
  require(fraction > 0 && fraction <= 1, "the fraction of a GPU's memory is {}, but must lie in (0, 1]", fraction);
  const std::size_t all = cuda_device(current_cuda_device()).memory_bytes;
  this_thread().memory()->set_limit(static_cast<std::size_t>(fraction * static_cast<double>(all)));
}

}  // namespace trireme::device
