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

  Stream& stream();
  Stream* exchange_stream(Stream* stream);
  const std::shared_ptr<CachingMemory>& memory();
  const std::shared_ptr<CachingMemory>& pinned_memory();

 private:
  void begin();

  int device_ = 0;
  bool begun_ = false;
  std::optional<Stream> own_stream_;
  Stream* stream_ = nullptr;
  std::shared_ptr<CachingMemory> memory_;
  std::shared_ptr<CachingMemory> pinned_memory_;
};

ThisThread& this_thread();

}  // namespace trireme::device
