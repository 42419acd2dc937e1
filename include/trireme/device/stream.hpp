#pragma once

#include <cstddef>
#include <memory>

#include "trireme/core/export.hpp"

// Order between work on a GPU. Operations on tensors of Cuda go into a stream of their thread's and return at once.
namespace trireme TRIREME_EXPORT {
namespace device {

// A point in a stream: what was put into it before.
class Event {
 public:
  Event();  // of this thread's GPU, not yet recorded
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  bool is_done() const;                              // true too before it is recorded
  void wait() const;                                 // the host waits
  void* handle() const noexcept { return handle_; }  // cudaEvent_t

 private:
  void* handle_ = nullptr;
};

// A queue of work on this thread's GPU, done in order.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  void record(Event& event);             // the event stands for what is in the queue now
  void order_after(const Event& event);  // what comes next waits for it on the GPU, not on the host
  void wait() const;                     // the host waits until the queue is empty

  // Copies between pinned_memory() and this thread's GPU, as part of the queue: the host goes on, and leaves the pinned memory
  // alone until an event recorded after them is done.
  void copy_from_pinned(void* target, const void* pinned, std::size_t bytes);
  void copy_to_pinned(void* pinned, const void* source, std::size_t bytes);

  void* handle() const noexcept { return handle_; }  // cudaStream_t

 private:
  void* handle_ = nullptr;
};

// The one stream that this thread's operations go into. Throws Error{not_available} where there is no GPU.
Stream& current_stream();

}  // namespace device
}  // namespace trireme
