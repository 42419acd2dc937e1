#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "trireme/core/export.hpp"

// The NVIDIA GPUs of this machine. Each thread uses one GPU, by default GPU 0: the thread's tensors lie in the memory of this
// GPU, and the thread's operations run there.
namespace trireme TRIREME_EXPORT {
namespace device {

// The number of GPUs; 0 without CUDA in the build, without a driver or without a GPU.
int cuda_device_count();

// Throws Error{not_available} with the reason if cuda_device_count() is 0.
void require_cuda();

// Sets the GPU of this thread. Call it before the thread makes its first tensor or stream, because a tensor or stream stays on
// the GPU on which it was made.
void set_cuda_device(int device);
int current_cuda_device();

struct CudaDevice {
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // unique across machines
  int major = 0;     // of the compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;

  bool has_float8_products() const { return 10 * major + minor >= 89; }
};
CudaDevice cuda_device(int device);

// Whether float matrix products and convolutions of this thread may round their operands to TF32 (10 mantissa bits). The
// default is false. No effect on CPUs.
void allow_tf32(bool allow);
bool tf32_allowed();

}  // namespace device
}  // namespace trireme
