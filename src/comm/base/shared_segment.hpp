#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/calls/exchange.hpp"

namespace trireme::comm {

// Shared memory, mapped into this process. It has no name in /dev/shm, so a killed job leaves nothing behind: other processes
// open it by the descriptor of its creator.
class SharedSegment {
 public:
  static std::shared_ptr<SharedSegment> create(std::size_t bytes);
  static std::shared_ptr<SharedSegment> open(const std::string& place, std::size_t bytes);  // another's place()
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  const std::string& place() const { return place_; }  // the place for open(), until seal(); unique on this machine

  void reserve(std::size_t offset, std::size_t bytes);  // throws if there is no space, which would kill the process later
  void seal();                                          // closes the descriptor, once all have mapped the segment

 private:
  SharedSegment(std::string place, std::size_t bytes, int descriptor);

  std::string place_;
  std::size_t bytes_;
  int descriptor_;
  std::byte* data_ = nullptr;
};

struct SharingPlan {
  std::size_t bytes = 0;
  std::vector<int> sharers;  // indices in the exchange's texts; the first one creates
  int me = 0;                // this rank's index in the exchange's texts
  std::function<void(SharedSegment&)> on_create = [](SharedSegment&) {};  // called by the creator, before others map it
  std::function<void(SharedSegment&)> on_map = [](SharedSegment&) {};     // called by every sharer
};

struct Sharing {
  std::shared_ptr<SharedSegment> segment;  // null if a sharer failed
  std::string failure;                     // the reason, the same on all sharers
  std::string place;                       // of the segment, unique on this node
};

// Collective over the ranks of the exchange; ranks without sharers in their plan only take part in the exchange.
Sharing share_segment(const Exchange& exchange, const SharingPlan& plan);

}  // namespace trireme::comm
