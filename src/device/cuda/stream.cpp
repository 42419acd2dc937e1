#include "trireme/device/stream.hpp"

#include <utility>

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "device/cuda/this_thread.hpp"
#include "trireme/device/graph.hpp"

namespace trireme::device {
namespace {

cudaEvent_t native(const Event& event) { return static_cast<cudaEvent_t>(event.handle()); }

}  // namespace

Event::Event() {
  this_thread().begin();
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  handle_ = event;
}
// A destructor can't report errors; the next call on the stream does.
Event::~Event() {
  if (handle_ != nullptr) ignore_cuda(cudaEventDestroy(native(*this)));
}
Event::Event(Event&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
Event& Event::operator=(Event&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

bool Event::is_done() const {
  require_not_capturing("asking whether a GPU's event is done");
  const cudaError_t status = cudaEventQuery(native(*this));
  if (status == cudaErrorNotReady) {
    ignore_cuda(status);
    return false;
  }
  check_cuda(status, "cudaEventQuery");
  return true;
}
void Event::wait() const {
  require_not_capturing("waiting for a GPU's event");
  check_cuda(cudaEventSynchronize(native(*this)), "cudaEventSynchronize");
}

Stream::Stream() {
  this_thread().begin();
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  handle_ = stream;
}
Stream::~Stream() {
  if (handle_ != nullptr) ignore_cuda(cudaStreamDestroy(native(*this)));
}
Stream::Stream(Stream&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

void Stream::record(Event& event) { check_cuda(cudaEventRecord(native(event), native(*this)), "cudaEventRecord"); }
void Stream::order_after(const Event& event) {
  check_cuda(cudaStreamWaitEvent(native(*this), native(event), 0), "cudaStreamWaitEvent");
}
void Stream::wait() const {
  require_not_capturing("waiting for a GPU's stream");
  check_cuda(cudaStreamSynchronize(native(*this)), "cudaStreamSynchronize");
}

void Stream::copy_from_pinned(void* target, const void* pinned, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(target, pinned, bytes, cudaMemcpyHostToDevice, native(*this)), "cudaMemcpyAsync");
}
void Stream::copy_to_pinned(void* pinned, const void* source, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(pinned, source, bytes, cudaMemcpyDeviceToHost, native(*this)), "cudaMemcpyAsync");
}

Stream& current_stream() { return this_thread().stream(); }

}  // namespace trireme::device
