#include "comm/tcp/frame_rules.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace trireme::comm {
namespace {

constexpr std::size_t most_text_bytes = std::size_t{1} << 20;

bool is_below(std::int32_t number, std::size_t end) { return number >= 0 && static_cast<std::size_t>(number) < end; }

bool is_known(const WrittenCall& call) {
  return call.kind <= CallKind::receive && call.op <= ReduceOp::fixed_sum && call.dtype <= DType::float64;
}

// The bytes of all elements of a call or message; nothing if these are more than a frame may have.
std::optional<std::uint64_t> bytes_of(const WrittenCall& call) {
  const std::uint64_t size = size_of(call.dtype);
  if (call.count > most_frame_bytes / size) return std::nullopt;
  return call.count * size;
}

// The bytes that a member of a group sends with a call.
std::uint64_t given_bytes(const FrameHeader& header, std::uint64_t all, std::size_t ranks) {
  switch (header.work) {
    case CallKind::send:
    case CallKind::receive:
    case CallKind::barrier: return 0;
    case CallKind::all_reduce:
    case CallKind::reduce_scatter: return all;
    case CallKind::broadcast: return header.call.root == header.rank ? all : 0;
    case CallKind::all_gather:
      return static_cast<std::uint64_t>(
                 part_of(static_cast<std::int64_t>(header.call.count), header.rank, static_cast<int>(ranks)).count()) *
             size_of(header.call.dtype);
  }
  return 0;
}

std::string_view fault_of_members(const Frame& frame, int rank, int ranks, const MembersOfGroups& known) {
  if (frame.data.size() % sizeof(std::int32_t) != 0) return "members that are no numbers";
  const auto members = members_in(frame);
  std::vector<std::int32_t> sorted = members;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return "a member twice";
  if (!std::ranges::all_of(sorted, [ranks](std::int32_t one) { return one >= 0 && one < ranks; })) return "unknown members";
  if (!std::ranges::binary_search(sorted, rank)) return "members of another rank's group";
  const auto found = known.find(frame.header.group);
  if (found != known.end() && found->second != members) return "other members of a group than those before";
  return {};
}

std::string_view fault_of_call(const Frame& frame, const std::vector<std::int32_t>& members) {
  const FrameHeader& header = frame.header;
  if (!is_known(header.call) || header.call.kind > CallKind::broadcast || header.work > CallKind::broadcast) {
    return "an unknown call";
  }
  if (!is_below(header.call.root, members.size())) return "a call with an unknown root";
  const auto all = bytes_of(header.call);
  if (!all || frame.data.size() != given_bytes(header, *all, members.size())) return "a call with other data than it says";
  return {};
}

std::string_view fault_of_letter(const Frame& frame, const std::vector<std::int32_t>& members) {
  const FrameHeader& header = frame.header;
  if (!is_known(header.call) || header.call.kind != CallKind::send) return "an unknown message";
  if (!is_below(header.size, members.size()) || members[static_cast<std::size_t>(header.size)] != header.to) {
    return "a message to nobody of its group";
  }
  const auto all = bytes_of(header.call);
  if (!all || frame.data.size() != *all) return "a message with other data than it says";
  return {};
}

}  // namespace

std::vector<std::int32_t> members_in(const Frame& frame) {
  std::vector<std::int32_t> members(frame.data.size() / sizeof(std::int32_t));
  if (!members.empty()) std::memcpy(members.data(), frame.data.data(), members.size() * sizeof(std::int32_t));
  return members;
}

std::string_view fault_of(const Frame& frame, int rank, int ranks, const MembersOfGroups& members) {
  const FrameHeader& header = frame.header;
  switch (header.kind) {
    case FrameKind::members: return fault_of_members(frame, rank, ranks, members);
    case FrameKind::call:
    case FrameKind::letter: {
      const auto group = members.find(header.group);
      if (group == members.end()) return "something for an unknown group";
      if (!is_below(header.rank, group->second.size()) || group->second[static_cast<std::size_t>(header.rank)] != rank) {
        return "something in another rank's name";
      }
      return header.kind == FrameKind::call ? fault_of_call(frame, group->second) : fault_of_letter(frame, group->second);
    }
    case FrameKind::failure:
      if (header.rank < 0 || header.rank >= ranks || header.code > ErrorCode::internal) return "an unknown failure";
      return frame.data.size() > most_text_bytes ? "too long a text" : std::string_view();
    case FrameKind::farewell: return frame.data.empty() ? std::string_view() : "a farewell with data";
    default: return "what the hub alone sends";
  }
}

}  // namespace trireme::comm
