#pragma once

#include "device/cuda/check.hpp"

namespace trireme::device {

// An event in a stream that records its time.
class TimedEvent {
 public:
  TimedEvent() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~TimedEvent() { ignore_cuda(cudaEventDestroy(event_)); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  double seconds_since(const TimedEvent& start) const {  // the host waits
    check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace trireme::device
