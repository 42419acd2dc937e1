#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "trireme/device/memory.hpp"

namespace trireme::comm {

// A point in a stream.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual bool reached() = 0;               // may be called on any thread
  virtual bool captured() const = 0;        // the work is part of a graph, so nothing is under way now
  virtual void order_before_current() = 0;  // later work of the thread's current stream waits for this point
};

// The stream of a group's collectives, separate from the rank's compute streams.
class CommunicationStream {
 public:
  virtual ~CommunicationStream() = default;

  virtual cudaStream_t native() = 0;
  virtual void order_after_current() = 0;                // later work of this stream waits for the thread's current stream
  virtual std::unique_ptr<Completion> completion() = 0;  // the point after all work that this stream holds now
  virtual bool reaches(const void* data) = 0;            // whether data is memory of a GPU
  virtual void use_on_this_thread() = 0;                 // selects the GPU on a thread that makes no streams
  virtual void wait_for_gpu() noexcept = 0;              // waits for the work of all streams

  // Copy through the current stream and wait for it.
  virtual void to_host(void* host, const void* gpu, std::size_t bytes) = 0;
  virtual void to_gpu(void* gpu, const void* host, std::size_t bytes) = 0;

  virtual std::shared_ptr<device::MemoryResource> gpu_memory() = 0;
  virtual std::shared_ptr<device::MemoryResource> staging_memory() = 0;  // on the host
};

using MakeStream = std::function<std::shared_ptr<CommunicationStream>()>;

std::shared_ptr<CommunicationStream> make_gpu_stream();  // on this thread's GPU

}  // namespace trireme::comm
