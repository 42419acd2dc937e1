#include <fmt/ranges.h>

#include <span>

#include "device/cuda/check.hpp"
#include "device/cuda/this_thread.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme::device {
namespace {

// Counts the GPUs. Returns the error that prevents their use, or cudaSuccess.
cudaError_t count_devices(int& count) {
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    count = 0;
    static_cast<void>(cudaGetLastError());
  }
  return status;
}

}  // namespace

void check_cuda(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // so that no later launch reports it
  const bool memory = status == cudaErrorMemoryAllocation;
  throw Error({.code = memory ? ErrorCode::out_of_memory : ErrorCode::internal,
               .message = cudaGetErrorString(status),
               .operation = std::string(call),
               .had = cudaGetErrorName(status),
               .hint = memory ? "" : "CUDA_LAUNCH_BLOCKING=1 shows which operation fails, compute-sanitizer which access"});
}

int cuda_device_count() {
  int count = 0;
  count_devices(count);
  return count;
}

void require_cuda() {
  int count = 0;
  const cudaError_t status = count_devices(count);
  if (count > 0) return;
  throw Error({.code = ErrorCode::not_available,
               .message = "no NVIDIA GPU can be used here",
               .had = status == cudaSuccess ? "no device" : cudaGetErrorString(status),
               .hint = "see what nvidia-smi and CUDA_VISIBLE_DEVICES say, or use the CPU"});
}

void set_cuda_device(int device) {
  require_cuda();
  const int count = cuda_device_count();
  require(device >= 0 && device < count, "there is no GPU {}: this machine has {}, counted from 0", device, count);
  this_thread().choose(device);
}

int current_cuda_device() { return this_thread().device(); }

CudaDevice cuda_device(int device) {
  require_cuda();
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return {.name = properties.name,
          .uuid = fmt::format("{:02x}", fmt::join(std::span(reinterpret_cast<const unsigned char*>(properties.uuid.bytes),
                                                            sizeof(properties.uuid.bytes)),
                                                  "")),
          .major = properties.major,
          .minor = properties.minor,
          .multiprocessors = properties.multiProcessorCount,
          .memory_bytes = properties.totalGlobalMem};
}

}  // namespace trireme::device
