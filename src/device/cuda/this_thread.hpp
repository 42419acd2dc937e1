#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "device/caching_memory.hpp"
#include "trireme/device/stream.hpp"

namespace trireme::device {

// A thread's GPU, stream and memory, created on first use.
class ThisThread {
 public:
  int device() const { return device_; }
  void choose(int device);

  void begin();  // marks the GPU as used
  Stream& stream();
  const std::shared_ptr<CachingMemory>& memory();
  const std::shared_ptr<CachingMemory>& pinned_memory();

  // Between these calls memory() returns the graph's memory.
  void begin_capture(std::shared_ptr<CachingMemory> memory) { graph_memory_ = std::move(memory); }
  void end_capture() { graph_memory_ = nullptr; }
  bool is_capturing() const { return graph_memory_ != nullptr; }

 private:
  int device_ = 0;
  bool begun_ = false;
  std::optional<Stream> stream_;
  std::shared_ptr<CachingMemory> memory_;
  std::shared_ptr<CachingMemory> graph_memory_;  // null unless it is capturing
  std::shared_ptr<CachingMemory> pinned_memory_;
};

ThisThread& this_thread();

}  // namespace trireme::device
