#include "comm/shared/staging.hpp"

#include <algorithm>
#include <cstring>

#include "comm/shared/segment_part.hpp"

namespace trireme::comm {

Staging::Staging(const GroupControl& control, RankContext& context, std::span<const int> node_ranks, int me)
    : control_(control), context_(context), node_ranks_(node_ranks), me_(me), pointers_(node_ranks.size()) {}

bool Staging::advance(const Call& call, std::span<std::byte* const> blocks) {
  const auto count = static_cast<std::int64_t>(call.count);
  const auto capacity = static_cast<std::int64_t>(control_.staging_bytes() / size_of(call.dtype));
  const bool mine_is_private = blocks[static_cast<std::size_t>(me_)] == nullptr;
  while (begin_ < count) {
    const Range round{begin_, std::min(begin_ + capacity, count)};
    if (step_ == Step::fill) {
      if (mine_is_private) fill(call, round);
      announce(&RankProgress::staged);
      step_ = Step::combine;
    }
    if (step_ == Step::combine) {
      if (!all_reached(&RankProgress::staged)) return false;
      const Working working(control_.progress(me_));
      if (context_.node().failed()) return false;
      combine(call, blocks, round);
      announce(&RankProgress::combined);
      step_ = Step::drain;
    }
    if (!all_reached(&RankProgress::combined)) return false;
    if (mine_is_private) drain(call, round);
    step_ = Step::fill;
    begin_ = round.end;
    ++rounds_;
  }
  begin_ = 0;
  return true;
}

// Copies in the data that other ranks will read.
void Staging::fill(const Call& call, Range round) {
  const int ranks = static_cast<int>(node_ranks_.size());
  const int parts = call.num_parts(ranks);
  const auto copy_parts = [&](bool mine) {
    for (int part = 0; part < parts; ++part) {
      if ((call.owner_of(part) == me_) != mine) continue;
      const Range range = part_of(static_cast<std::int64_t>(call.count), part, parts);
      copy(call, round, {range.begin - round.begin, range.end - round.begin}, true);
    }
  };
  switch (call.work()) {
    case CallKind::send:
    case CallKind::receive:
    case CallKind::barrier: return;
    case CallKind::all_reduce: return copy_all_but_part(call, round, part_of(round.count(), me_, ranks), true);
    case CallKind::reduce_scatter: return copy_parts(false);
    case CallKind::all_gather: return copy_parts(true);
    case CallKind::broadcast:
      if (call.source() == me_) copy(call, round, {0, round.count()}, true);
      return;
  }
}

void Staging::combine(const Call& call, std::span<std::byte* const> blocks, Range round) {
  const std::size_t offset = static_cast<std::size_t>(round.begin) * size_of(call.dtype);
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    pointers_[rank] = blocks[rank] != nullptr ? blocks[rank] + offset : control_.staging(static_cast<int>(rank));
  }
  pointers_[static_cast<std::size_t>(me_)] = static_cast<std::byte*>(call.data) + offset;
  do_my_part({.call = call,
              .me = me_,
              .range = round,
              .from = {const_cast<const std::byte* const*>(pointers_.data()), pointers_.size()},
              .to = pointers_,
              .staged = true});
}

// Copies out the data that other ranks wrote; only all_reduce writes to other ranks.
void Staging::drain(const Call& call, Range round) {
  if (call.work() != CallKind::all_reduce) return;
  copy_all_but_part(call, round, part_of(round.count(), me_, static_cast<int>(node_ranks_.size())), false);
}

// `range` counts from the begin of the round.
void Staging::copy(const Call& call, Range round, Range range, bool in) {
  const std::int64_t begin = std::clamp<std::int64_t>(range.begin, 0, round.count());
  const std::int64_t end = std::clamp<std::int64_t>(range.end, 0, round.count());
  if (end <= begin) return;
  const std::size_t size = size_of(call.dtype);
  std::byte* own = static_cast<std::byte*>(call.data) + static_cast<std::size_t>(round.begin + begin) * size;
  std::byte* staged = control_.staging(me_) + static_cast<std::size_t>(begin) * size;
  std::memcpy(in ? staged : own, in ? own : staged, static_cast<std::size_t>(end - begin) * size);
}

void Staging::copy_all_but_part(const Call& call, Range round, Range part, bool in) {
  copy(call, round, {0, std::max<std::int64_t>(part.begin, 0)}, in);
  copy(call, round, {std::max<std::int64_t>(part.end, 0), round.count()}, in);
}

bool Staging::all_reached(std::atomic<std::uint64_t> RankProgress::*counter) const {
  for (int rank = 0; rank < static_cast<int>(node_ranks_.size()); ++rank) {
    if ((control_.progress(rank).*counter).load() <= rounds_) return false;
  }
  return true;
}

void Staging::announce(std::atomic<std::uint64_t> RankProgress::*counter) {
  (control_.progress(me_).*counter).store(rounds_ + 1, std::memory_order_release);
  context_.changed(node_ranks_);
}

}  // namespace trireme::comm
