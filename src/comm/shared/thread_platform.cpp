#include "comm/shared/thread_platform.hpp"

#include <new>
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

// The first member makes what the group shares; the others get its address and copy the pointer before it lets go.
std::shared_ptr<Backend> ThreadPlatform::make_group(const std::shared_ptr<Backend>& parent, const Members& members) {
  std::shared_ptr<ThreadGroup> group;
  if (members.me == 0) group = std::make_shared<ThreadGroup>(members.size());
  const auto address = reinterpret_cast<std::uintptr_t>(members.me == 0 ? &group : nullptr);
  const Group ranks_of_parent(parent);
  const auto texts = ranks_of_parent.gather_texts(std::to_string(address), members.label);
  if (members.me != 0) {
    const auto& ranks = parent->members().ranks;
    const auto leader = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), members.ranks.front()) - ranks.begin());
    group = *reinterpret_cast<const std::shared_ptr<ThreadGroup>*>(std::stoull(texts[leader]));
  }
  ranks_of_parent.gather_texts("", members.label);
  return join(members, group);
}

}  // namespace trireme::comm
