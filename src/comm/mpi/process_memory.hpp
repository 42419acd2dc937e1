#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/base/backend.hpp"
#include "comm/base/shared_segment.hpp"
#include "comm/shared/address_space.hpp"

namespace trireme::comm {

// Blocks that the processes of a node share: one segment per collective allocation, with one part per rank.
class ProcessAddressSpace final : public AddressSpace {
 public:
  // `owners`: the world ranks whose parts of `part_bytes` follow each other from `first_part` on.
  struct Block {
    std::uint64_t id = 0;  // the same on all owners
    std::shared_ptr<SharedSegment> segment;
    std::vector<int> owners;
    std::size_t me = 0;  // index of this rank
    std::size_t part_bytes = 0;

    std::byte* part(std::size_t owner) const;
    std::byte* mine() const { return part(me); }
    std::atomic<std::uint32_t>& released() const;  // how many owners have released their part
  };
  static std::size_t segment_bytes(std::size_t part_bytes, std::size_t owners);
  static std::size_t part_offset(std::size_t part_bytes, std::size_t owner);

  // Also unmaps the blocks that all owners have released. Call it on the rank's thread, like publish() and reach().
  void add(Block block);
  bool release(void* mine);  // on any thread; false if no block has this part

  Address publish(void* data, std::size_t bytes, std::span<const int> readers) const override;
  std::byte* reach(Address address, int owner) const override;

 private:
  std::mutex mutex_;  // for add() and release(); the rank's thread reads without it
  std::vector<Block> blocks_;
};

// Group::memory() of processes.
std::shared_ptr<device::MemoryResource> make_process_memory(std::shared_ptr<Backend> group,
                                                            std::shared_ptr<ProcessAddressSpace> space);

}  // namespace trireme::comm
