#include "comm/nccl/communication_stream.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/device/stream.hpp"

namespace trireme::comm {
namespace {

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  device::check_cuda(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

class GpuCompletion final : public Completion {
 public:
  explicit GpuCompletion(device::Stream& stream) : captured_(is_capturing(device::native(stream))) { stream.record(event_); }

  // CUDA forbids queries of events in a graph, and of all events while a graph is recorded; then the work counts as under way.
  bool reached() override { return captured_ || (!device::is_capturing() && event_.is_done()); }
  bool captured() const override { return captured_; }
  void order_before_current() override { device::current_stream().order_after(event_); }

 private:
  device::Event event_;
  bool captured_;
};

class GpuStream final : public CommunicationStream {
 public:
  cudaStream_t native() override { return device::native(stream_); }
  void order_after_current() override {
    device::Event ready;
    device::current_stream().record(ready);
    stream_.order_after(ready);
  }
  std::unique_ptr<Completion> completion() override { return std::make_unique<GpuCompletion>(stream_); }

  bool reaches(const void* data) override {
    if (data == nullptr) return false;
    cudaPointerAttributes attributes{};
    device::check_cuda(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
    return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  }

  void use_on_this_thread() override { device::check_cuda(cudaSetDevice(device_), "cudaSetDevice"); }
  void wait_for_gpu() noexcept override { static_cast<void>(cudaDeviceSynchronize()); }

  void to_host(void* host, const void* gpu, std::size_t bytes) override { device::copy_bytes(Cpu{}, host, Cuda{}, gpu, bytes); }
  void to_gpu(void* gpu, const void* host, std::size_t bytes) override { device::copy_bytes(Cuda{}, gpu, Cpu{}, host, bytes); }

  std::shared_ptr<device::MemoryResource> gpu_memory() override { return device::cuda_memory(); }
  std::shared_ptr<device::MemoryResource> staging_memory() override { return device::pinned_memory(); }

 private:
  int device_ = device::current_cuda_device();
  device::Stream stream_;
};

}  // namespace

std::shared_ptr<CommunicationStream> make_gpu_stream() { return std::make_shared<GpuStream>(); }

}  // namespace trireme::comm
