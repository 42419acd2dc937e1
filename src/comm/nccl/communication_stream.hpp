#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "trireme/device/memory.hpp"

namespace trireme::comm {

// That a stream has come to a point.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual bool reached() = 0;               // of any thread
  virtual bool captured() const = 0;        // of work that runs when a graph does: nothing is under way now
  virtual void order_before_current() = 0;  // what the thread's current stream gets from now on waits for it
};

// The stream of a group's collectives, beside those in which the rank computes.
class CommunicationStream {
 public:
  virtual ~CommunicationStream() = default;

  virtual cudaStream_t native() = 0;
  virtual void order_after_current() = 0;                // what comes next waits for the thread's current stream
  virtual std::unique_ptr<Completion> completion() = 0;  // of what has been put into it
  virtual bool reaches(const void* data) = 0;            // whether it is memory of a GPU
  virtual void use_on_this_thread() = 0;                 // of the GPU, by a thread that makes no streams
  virtual void wait_for_gpu() noexcept = 0;              // until all that was put into any stream is done

  // Through the current stream; done when the call returns.
  virtual void to_host(void* host, const void* gpu, std::size_t bytes) = 0;
  virtual void to_gpu(void* gpu, const void* host, std::size_t bytes) = 0;

  virtual std::shared_ptr<device::MemoryResource> gpu_memory() = 0;
  virtual std::shared_ptr<device::MemoryResource> staging_memory() = 0;  // of the host
};

using MakeStream = std::function<std::shared_ptr<CommunicationStream>()>;

std::shared_ptr<CommunicationStream> make_gpu_stream();  // on this thread's GPU

}  // namespace trireme::comm
