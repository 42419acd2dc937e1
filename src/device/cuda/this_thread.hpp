#pragma once

#include <memory>
#include <optional>

#include "device/caching_memory.hpp"
#include "trireme/device/stream.hpp"

namespace trireme::device {

// What a thread has of its GPU, made when it is first used.
class ThisThread {
 public:
  int device() const { return device_; }
  void choose(int device);

  void begin();  // uses the GPU from here on
  Stream& stream();
  const std::shared_ptr<CachingMemory>& memory();
  const std::shared_ptr<CachingMemory>& pinned_memory();

 private:
  int device_ = 0;
  bool begun_ = false;
  std::optional<Stream> stream_;
  std::shared_ptr<CachingMemory> memory_;
  std::shared_ptr<CachingMemory> pinned_memory_;
};

ThisThread& this_thread();

}  // namespace trireme::device
