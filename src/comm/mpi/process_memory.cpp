#include "comm/mpi/process_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

#include "trireme/core/log.hpp"

namespace trireme::comm {
namespace {

constexpr std::size_t page = 4096;

// The gap between parts. AMD processors index their first-level cache by a hash of the address: parts a power of two apart
// would have equal hashes and evict each other.
constexpr std::size_t gap = 5 * page;

std::size_t pages(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page; }

}  // namespace

// The first page holds the count of releases; then follows one part for each owner.
std::size_t ProcessAddressSpace::part_offset(std::size_t part_bytes, std::size_t owner) {
  return page + owner * (pages(part_bytes) + gap);
}
std::size_t ProcessAddressSpace::segment_bytes(std::size_t part_bytes, std::size_t owners) {
  return part_offset(part_bytes, owners);
}

std::byte* ProcessAddressSpace::Block::part(std::size_t owner) const {
  return segment->data() + part_offset(part_bytes, owner);
}
std::atomic<std::uint32_t>& ProcessAddressSpace::Block::released() const {
  return *std::launder(reinterpret_cast<std::atomic<std::uint32_t>*>(segment->data()));
}

void ProcessAddressSpace::add(Block block) {
  const std::lock_guard lock(mutex_);
  std::erase_if(blocks_, [](const Block& old) { return old.released().load() == old.owners.size(); });
  blocks_.push_back(std::move(block));
}

bool ProcessAddressSpace::release(void* mine) {
  const std::lock_guard lock(mutex_);
  for (const Block& block : blocks_) {
    if (block.mine() != mine) continue;
    madvise(mine, pages(block.part_bytes), MADV_REMOVE);  // returns the pages to the system now
    block.released().fetch_add(1);
    return true;
  }
  return false;
}

Address ProcessAddressSpace::publish(void* data, std::size_t bytes, std::span<const int> readers) const {
  const auto* begin = static_cast<const std::byte*>(data);
  for (const Block& block : blocks_) {
    const std::byte* mine = block.mine();
    if (std::less<>{}(begin, mine) || begin + bytes > mine + block.part_bytes) continue;
    const bool all_reach = std::ranges::all_of(
        readers, [&block](int reader) { return std::ranges::find(block.owners, reader) != block.owners.end(); });
    return all_reach ? Address{.segment = block.id, .offset = static_cast<std::uint64_t>(begin - mine)} : Address{};
  }
  return {};
}

std::byte* ProcessAddressSpace::reach(Address address, int owner) const {
  for (const Block& block : blocks_) {
    if (block.id != address.segment) continue;
    const auto index = std::ranges::find(block.owners, owner) - block.owners.begin();
    return block.part(static_cast<std::size_t>(index)) + address.offset;
  }
  throw Error({.code = ErrorCode::internal, .message = fmt::format("rank {} published memory that is not mapped here", owner)});
}

namespace {

class ProcessMemory final : public device::MemoryResource {
 public:
  ProcessMemory(std::shared_ptr<Backend> group, std::shared_ptr<ProcessAddressSpace> space)
      : group_(std::move(group)), space_(std::move(space)), private_memory_(device::host_memory()) {}

  std::string_view name() const noexcept override { return "shared segment"; }

 private:
  void* do_allocate(std::size_t bytes) override {
    require_same_size(bytes);
    const Members& members = group_->members();
    const auto me = static_cast<std::size_t>(members.me);
    const auto owners = members.ranks.size();
    SharingPlan plan;
    plan.bytes = ProcessAddressSpace::segment_bytes(bytes, owners);
    plan.me = members.me;
    for (int rank = 0; rank < members.size(); ++rank) plan.sharers.push_back(rank);
    plan.on_create = [](SharedSegment& segment) {
      segment.reserve(0, page);
      new (segment.data()) std::atomic<std::uint32_t>(0);
    };
    // Each rank reserves its own part, so that the pages lie close to its cores.
    plan.on_map = [&](SharedSegment& segment) { segment.reserve(ProcessAddressSpace::part_offset(bytes, me), pages(bytes)); };
    const Sharing sharing =
        share_segment([this](std::string_view text) { return Group(group_).gather_texts(text, "memory"); }, plan);
    if (sharing.segment == nullptr) return allocate_private(bytes, sharing.failure);

    ProcessAddressSpace::Block block{.id = std::hash<std::string>{}(sharing.place) | 1,
                                     .segment = sharing.segment,
                                     .owners = members.ranks,
                                     .me = me,
                                     .part_bytes = bytes};
    void* mine = block.mine();
    space_->add(std::move(block));
    return mine;
  }

  void do_deallocate(void* block, std::size_t bytes) noexcept override {
    if (!space_->release(block)) private_memory_->deallocate(block, bytes);
  }

  void require_same_size(std::size_t bytes) const {
    const std::vector<std::string> sizes = Group(group_).gather_texts(std::to_string(bytes), "memory");
    for (std::size_t rank = 1; rank < sizes.size(); ++rank) {
      if (sizes[rank] == sizes[0]) continue;
      const auto& ranks = group_->members().ranks;
      throw Error({.code = ErrorCode::rank_mismatch,
                   .message = fmt::format("ranks {} and {} of group \"{}\" allocate {} and {} bytes of shared memory", ranks[0],
                                          ranks[rank], group_->members().label, sizes[0], sizes[rank]),
                   .hint = "memory of a group is allocated by all its ranks in the same order with the same sizes"});
    }
  }

  void* allocate_private(std::size_t bytes, const std::string& reason) {
    if (group_->members().me == 0 && !std::exchange(warned_, true)) {
      log(Severity::warning, "group \"{}\" uses private memory, its collectives will copy: {}", group_->members().label,
          reason);
    }
    return private_memory_->allocate(bytes);
  }

  std::shared_ptr<Backend> group_;
  std::shared_ptr<ProcessAddressSpace> space_;
  std::shared_ptr<device::MemoryResource> private_memory_;
  bool warned_ = false;
};

}  // namespace

std::shared_ptr<device::MemoryResource> make_process_memory(std::shared_ptr<Backend> group,
                                                            std::shared_ptr<ProcessAddressSpace> space) {
  return std::make_shared<ProcessMemory>(std::move(group), std::move(space));
}

}  // namespace trireme::comm
