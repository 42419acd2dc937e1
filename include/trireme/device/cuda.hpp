#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "trireme/core/export.hpp"

// The NVIDIA GPUs of this machine. A thread works with one of them, number 0 unless it says otherwise: its tensors lie in that
// GPU's memory and its operations run there.
namespace trireme TRIREME_EXPORT {
namespace device {

// How many GPUs there are; 0 where the build, the driver or the machine lacks them.
int cuda_device_count();

// Throws Error{not_available}, which says what is missing, where cuda_device_count() is 0.
void require_cuda();

// The GPU of this thread. Tensors and streams that it has made stay with their GPU: choose before the first.
void set_cuda_device(int device);
int current_cuda_device();

struct CudaDevice {
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // no other GPU of any machine has it
  int major = 0;     // of the compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;

  bool has_float8_products() const { return 10 * major + minor >= 89; }
};
CudaDevice cuda_device(int device);

// Whether this thread's matrix products and convolutions of float may round their operands to TF32, 10 bits of mantissa. No
// at first; nothing changes on CPUs.
void allow_tf32(bool allow);
bool tf32_allowed();

}  // namespace device
}  // namespace trireme
