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

// Blocks that the processes of a node hold in common: one segment for each collective allocation, with one part per rank.
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
    std::atomic<std::uint32_t>& released() const;  // how many owners have given their part back
  };
  static std::size_t segment_bytes(std::size_t part_bytes, std::size_t owners);
  static std::size_t part_offset(std::size_t part_bytes, std::size_t owner);

  ProcessAddressSpace();

  void add(Block block);
  bool release(void* mine);  // false: not one of ours. The mapping stays until all owners have released theirs

  Address publish(void* data, std::size_t bytes, std::span<const int> readers) const override;
  std::byte* reach(Address address, int owner) const override;

 private:
  using Table = std::vector<Block>;
  void replace(Table table);

  std::mutex mutex_;  // of changes; readers take no lock
  std::atomic<const Table*> current_;
  std::vector<std::unique_ptr<Table>> tables_;  // the current one is the last; blocks may be released on any thread
};

// Group::memory() of processes.
std::shared_ptr<device::MemoryResource> make_process_memory(std::shared_ptr<Backend> group,
                                                            std::shared_ptr<ProcessAddressSpace> space);

}  // namespace trireme::comm
