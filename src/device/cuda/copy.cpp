#include "device/cuda/check.hpp"
#include "device/cuda/fill.hpp"
#include "device/cuda/stream.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/device/memory.hpp"

namespace trireme::device {
namespace {

void copy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  if (bytes > 0) check_cuda(cudaMemcpyAsync(target, source, bytes, kind, native_stream()), "cudaMemcpyAsync");
}

}  // namespace

// The driver may still read the host's memory when cudaMemcpyAsync() returns, so the host waits in both directions.
void copy_bytes(Cuda, void* target, Cpu, const void* source, std::size_t bytes) {
  require_not_capturing("a copy from the host's memory");
  copy(target, source, bytes, cudaMemcpyHostToDevice);
  if (bytes > 0) current_stream().wait();
}
void copy_bytes(Cpu, void* target, Cuda, const void* source, std::size_t bytes) {
  require_not_capturing("a copy to the host's memory");
  copy(target, source, bytes, cudaMemcpyDeviceToHost);
  if (bytes > 0) current_stream().wait();
}
void copy_bytes(Cuda, void* target, Cuda, const void* source, std::size_t bytes) {
  copy(target, source, bytes, cudaMemcpyDeviceToDevice);
}

void fill(Cuda, void* target, const void* element, std::size_t element_bytes, std::size_t count) {
  if (count == 0) return;
  if (element_bytes == 1) {
    check_cuda(cudaMemsetAsync(target, *static_cast<const unsigned char*>(element), count, native_stream()), "cudaMemsetAsync");
    return;
  }
  check_cuda(fill_elements(target, element, element_bytes, count, native_stream()), "fill");
}

}  // namespace trireme::device
