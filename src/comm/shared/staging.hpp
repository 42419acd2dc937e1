#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/base/rank_context.hpp"
#include "comm/calls/call.hpp"
#include "comm/shared/group_control.hpp"

namespace trireme::comm {

// Processes calls in which some ranks' data can't be reached by the others, in rounds of one staging block: these ranks copy
// their data in, every rank does its part, and these ranks copy the result out.
class Staging {
 public:
  Staging(const GroupControl& control, RankContext& context, std::span<const int> node_ranks, int me);

  // Advances as far as the other ranks allow; true when this rank has finished the call. blocks[r] is null if rank r's data are
  // out of reach.
  bool advance(const Call& call, std::span<std::byte* const> blocks);

 private:
  enum class Step { fill, combine, drain };

  void fill(const Call& call, Range round);
  void combine(const Call& call, std::span<std::byte* const> blocks, Range round);
  void drain(const Call& call, Range round);
  void copy(const Call& call, Range round, Range range, bool in);
  void copy_all_but_part(const Call& call, Range round, Range part, bool in);
  bool all_reached(std::atomic<std::uint64_t> RankProgress::*counter) const;
  void announce(std::atomic<std::uint64_t> RankProgress::*counter);

  GroupControl control_;
  RankContext& context_;
  std::span<const int> node_ranks_;
  int me_;
  Step step_ = Step::fill;
  std::int64_t begin_ = 0;    // of the current round
  std::uint64_t rounds_ = 0;  // completed rounds of all calls
  std::vector<std::byte*> pointers_;
};

}  // namespace trireme::comm
