#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/calls/exchange.hpp"

namespace trireme::comm {

// Shared memory, mapped into this process. It never has a name in /dev/shm, so a job that is killed at any moment leaves
// nothing behind: other processes open it by the descriptor of the one that made it.
class SharedSegment {
 public:
  static std::shared_ptr<SharedSegment> create(std::size_t bytes);
  static std::shared_ptr<SharedSegment> open(const std::string& place, std::size_t bytes);  // another's place()
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  const std::string& place() const { return place_; }  // where others find it until it is sealed; unique on this machine

  void reserve(std::size_t offset, std::size_t bytes);  // throws where a later access would kill the process: no space
  void seal();                                          // all have mapped it: gives up the descriptor

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
  std::function<void(SharedSegment&)> on_create = [](SharedSegment&) {};  // by the creator, before anyone else maps
  std::function<void(SharedSegment&)> on_map = [](SharedSegment&) {};     // by every sharer
};

struct Sharing {
  std::shared_ptr<SharedSegment> segment;  // null when a sharer failed
  std::string failure;                     // why, the same text on all sharers
  std::string place;                       // of the segment: unique on this node
};

// Collective over the ranks of the exchange; ranks with an empty plan only take part in it.
Sharing share_segment(const Exchange& exchange, const SharingPlan& plan);

}  // namespace trireme::comm
