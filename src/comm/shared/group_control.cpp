#include "comm/shared/group_control.hpp"

#include <cstring>
#include <functional>
#include <new>

namespace trireme::comm {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

std::uint64_t pack(const Call& call) {
  return static_cast<std::uint64_t>(call.kind) | static_cast<std::uint64_t>(call.op) << 8 |
         static_cast<std::uint64_t>(call.dtype) << 16 | static_cast<std::uint64_t>(call.peer) << 32;
}

Call unpack(std::uint64_t what) {
  return trireme::Call{.kind = static_cast<CallKind>(what & 0xff),
                       .op = static_cast<ReduceOp>(what >> 8 & 0xff),
                       .dtype = static_cast<DType>(what >> 16 & 0xff),
                       .peer = static_cast<std::int32_t>(what >> 32)};
}

std::size_t calls_offset(int ranks) { return static_cast<std::size_t>(ranks) * sizeof(RankProgress); }
std::size_t parcels_offset(int ranks) {
  return calls_offset(ranks) + static_cast<std::size_t>(ranks) * GroupControl::slots * sizeof(PublishedCall);
}
std::size_t staging_offset(int ranks) {
  return parcels_offset(ranks) + static_cast<std::size_t>(ranks) * GroupControl::parcels * GroupControl::parcel_bytes;
}

}  // namespace

void PublishedCall::publish(const Call& call, Address address, std::uint64_t sequence) {
  what_.store(pack(call), relaxed);
  count_.store(call.count, relaxed);
  name_hash_.store(std::hash<std::string_view>{}(call.name), relaxed);
  segment_.store(address.segment, relaxed);
  offset_.store(address.offset, relaxed);
  std::array<std::uint64_t, name_words> words{};
  write_name(call.name, {reinterpret_cast<char*>(words.data()), sizeof(words)});
  for (std::size_t word = 0; word < name_words; ++word) name_[word].store(words[word], relaxed);
  sequence_.store(sequence, std::memory_order_release);
}

bool PublishedCall::same_as(const PublishedCall& other) const {
  return what_.load(relaxed) == other.what_.load(relaxed) && count_.load(relaxed) == other.count_.load(relaxed) &&
         name_hash_.load(relaxed) == other.name_hash_.load(relaxed);
}

std::optional<std::string> PublishedCall::describe(std::uint64_t sequence) const {
  if (!holds(sequence)) return std::nullopt;
  Call call = unpack(what_.load(relaxed));
  call.count = count_.load(relaxed);
  std::array<std::uint64_t, name_words> words{};
  for (std::size_t word = 0; word < name_words; ++word) words[word] = name_[word].load(relaxed);
  std::array<char, sizeof(words)> name{};
  std::memcpy(name.data(), words.data(), sizeof(words));
  call.name = std::string_view(name.data(), strnlen(name.data(), name.size()));
  std::string text = comm::describe(call, sequence);
  if (!holds(sequence)) return std::nullopt;
  return text;
}

std::size_t GroupControl::bytes(int ranks, std::size_t staging_bytes) {
  return staging_offset(ranks) + static_cast<std::size_t>(ranks) * staging_bytes;
}

void GroupControl::create(std::byte* memory, int ranks) {
  std::uninitialized_value_construct_n(reinterpret_cast<RankProgress*>(memory), ranks);
  std::uninitialized_value_construct_n(reinterpret_cast<PublishedCall*>(memory + calls_offset(ranks)),
                                       static_cast<std::uint64_t>(ranks) * slots);
}

GroupControl::GroupControl(std::byte* memory, int ranks, std::size_t staging_bytes)
    : progress_(std::launder(reinterpret_cast<RankProgress*>(memory))),
      calls_(std::launder(reinterpret_cast<PublishedCall*>(memory + calls_offset(ranks)))),
      parcels_(memory + parcels_offset(ranks)),
      staging_(memory + staging_offset(ranks)),
      staging_bytes_(staging_bytes) {}

}  // namespace trireme::comm
