#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::comm {

// POSIX shared memory, mapped into this process. The name goes as soon as all processes have mapped it, so a killed job
// leaves nothing behind.
class SharedSegment {
 public:
  static std::shared_ptr<SharedSegment> create(std::size_t bytes);
  static std::shared_ptr<SharedSegment> open(const std::string& name, std::size_t bytes);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }

  void reserve(std::size_t offset, std::size_t bytes);  // throws where a later access would kill the process: no space
  void seal();                                          // all have mapped it: gives up the name and the descriptor

 private:
  SharedSegment(std::string name, std::size_t bytes, int descriptor, bool owner);

  std::string name_;
  std::size_t bytes_;
  int descriptor_;
  bool owner_;  // of the name
  std::byte* data_ = nullptr;
};

// Gives every rank the text of each.
using Exchange = std::function<std::vector<std::string>(std::string_view text)>;

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
  std::string name;                        // what the segment was called: unique on this node
};

// Collective over the ranks of the exchange; ranks with an empty plan only take part in it.
Sharing share_segment(const Exchange& exchange, const SharingPlan& plan);

}  // namespace trireme::comm
