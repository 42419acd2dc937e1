#include "comm/shared/small_all_reduce.hpp"

#include <algorithm>
#include <cstring>

#include "comm/reduce/reduce.hpp"

namespace trireme::comm {
namespace {

// For more bytes it is faster to wait twice and move each element only to the rank that reduces it.
constexpr std::size_t most_bytes_of_two_ranks = std::size_t{1} << 10;
constexpr std::size_t most_read_bytes = std::size_t{12} << 10;  // that a rank reads from all others together

}  // namespace

SmallAllReduce::SmallAllReduce(const GroupControl& control, int ranks, int me)
    : control_(control), me_(me), from_(static_cast<std::size_t>(ranks)) {}

bool SmallAllReduce::carry(const Call& call) const {
  if (call.work() != CallKind::all_reduce) return false;
  const std::size_t others = from_.size() - 1;
  const std::size_t most_bytes = others == 1 ? most_bytes_of_two_ranks : most_read_bytes / others;
  return call.bytes() <= std::min(most_bytes, GroupControl::parcel_bytes);
}

void SmallAllReduce::fill(const Call& call, std::uint64_t sequence) {
  if (call.count > 0) std::memcpy(control_.parcel(me_, sequence), call.data, call.bytes());
  control_.call(me_, sequence).add_parcel(sequence);
}

bool SmallAllReduce::all_filled(std::uint64_t sequence) const {
  for (int rank = 0; rank < static_cast<int>(from_.size()); ++rank) {
    if (!control_.call(rank, sequence).has_parcel(sequence)) return false;
  }
  return true;
}

void SmallAllReduce::reduce(const Call& call, std::uint64_t sequence) {
  for (std::size_t rank = 0; rank < from_.size(); ++rank) from_[rank] = control_.parcel(static_cast<int>(rank), sequence);
  auto* mine = static_cast<std::byte*>(call.data);
  from_[static_cast<std::size_t>(me_)] = mine;
  comm::reduce(call.arithmetic(), call.dtype, from_, {&mine, 1}, call.count);
}

}  // namespace trireme::comm
