#include "comm/shared/thread_platform.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "comm/shared/group_control.hpp"
#include "comm/shared/lone_backend.hpp"
#include "comm/shared/segment_backend.hpp"

namespace trireme::comm {
namespace {

constexpr std::align_val_t cache_line{64};
constexpr std::size_t no_staging = 0;  // threads reach all memory

std::shared_ptr<std::byte> allocate(std::size_t bytes) {
  auto* memory = static_cast<std::byte*>(::operator new(bytes, cache_line));
  return {memory, [](std::byte* allocated) { ::operator delete(allocated, cache_line); }};
}

// By an Offer the first member of a new group gives the group to the others, who find it by its number. The destructor
// withdraws it: if the first member throws, the others find nothing.
class Offer {
 public:
  explicit Offer(std::shared_ptr<ThreadGroup> group) {
    const std::lock_guard lock(mutex_);
    number_ = ++last_number_;
    offers_[number_] = std::move(group);
  }
  ~Offer() {
    const std::lock_guard lock(mutex_);
    offers_.erase(number_);
  }
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  std::uint64_t number() const { return number_; }

  static std::shared_ptr<ThreadGroup> find(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = offers_.find(number);
    return found == offers_.end() ? nullptr : found->second;
  }

 private:
  static inline std::mutex mutex_;
  static inline std::map<std::uint64_t, std::shared_ptr<ThreadGroup>> offers_;
  static inline std::uint64_t last_number_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace

ThreadGroup::ThreadGroup(int ranks)
    : memory(allocate(GroupControl::bytes(ranks, no_staging))), boxes(std::make_shared<Mailboxes>()) {
  GroupControl::create(memory.get(), ranks);
}

std::shared_ptr<Backend> ThreadPlatform::join(const Members& members, const std::shared_ptr<ThreadGroup>& group) {
  if (members.size() == 1) return std::make_shared<LoneBackend>(context_, members);
  return std::make_shared<SegmentBackend>(
      context_, shared_from_this(), members,
      SegmentBackend::Shared{.memory = group->memory,
                             .control = GroupControl(group->memory.get(), members.size(), no_staging),
                             .node_ranks = members.ranks},
      open_mail(group->boxes, context_, members, members.ranks));
}

// The first member makes the ThreadGroup and offers it until all have it.
std::shared_ptr<Backend> ThreadPlatform::make_group(const std::shared_ptr<Backend>& parent, const Members& members) {
  std::shared_ptr<ThreadGroup> group;
  std::optional<Offer> offer;
  if (members.me == 0) {
    group = std::make_shared<ThreadGroup>(members.size());
    offer.emplace(group);
  }
  const Group ranks_of_parent(parent);
  const auto texts = ranks_of_parent.gather_texts(std::to_string(offer ? offer->number() : 0), members.label);
  if (members.me != 0) {
    const auto& ranks = parent->members().ranks;
    const auto leader = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), members.ranks.front()) - ranks.begin());
    group = Offer::find(std::stoull(texts[leader]));
  }
  ranks_of_parent.gather_texts("", members.label);  // throws if the first member has failed
  return join(members, group);
}

}  // namespace trireme::comm
