#pragma once

#include <cstddef>
#include <memory>

#include "trireme/core/export.hpp"

// Streams and events order work on a GPU. Operations on Cuda tensors go into their thread's stream and return immediately.
namespace trireme TRIREME_EXPORT {
namespace device {

// A point in a stream. An event is done when all earlier work of the stream is done.
class Event {
 public:
  Event();  // of this thread's GPU, not yet recorded
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  bool is_done() const;                              // also true before it is recorded
  void wait() const;                                 // the host waits
  void* handle() const noexcept { return handle_; }  // cudaEvent_t

 private:
  void* handle_ = nullptr;
};

// A queue of work on this thread's GPU, executed in order.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  void record(Event& event);             // sets the event to the current end of the queue
  void order_after(const Event& event);  // later work waits for the event on the GPU, not on the host
  void wait() const;                     // the host waits until the queue is empty

  // Enqueue a copy between pinned_memory() and this thread's GPU and return immediately. Do not use the pinned memory until an
  // event that was recorded after the copy is done.
  void copy_from_pinned(void* target, const void* pinned, std::size_t bytes);
  void copy_to_pinned(void* pinned, const void* source, std::size_t bytes);

  void* handle() const noexcept { return handle_; }  // cudaStream_t

 private:
  void* handle_ = nullptr;
};

// The stream of this thread's operations. Throws Error{not_available} without a GPU.
Stream& current_stream();

}  // namespace device
}  // namespace trireme
