#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trireme/comm/base/group.hpp"
#include "trireme/comm/wire/algorithm.hpp"

namespace trireme::comm {

// Elements that go to or come from one rank.
struct Transfer {
  int peer = 0;  // rank in the group
  Range range;
};

// The messages that a rank sends and receives at the same time. Received elements replace its own, or are reduced with them:
// then all receives have one range, and `place` is the number of receives that come before this rank's own elements in the
// order of the reduction. A step with one receive leaves it at 0, since a + b has the same bits as b + a.
struct WireStep {
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  bool reduces = false;
  std::size_t place = 0;
};

// One rank's part of a collective between nodes: consecutive steps, the same number on all ranks.
using WireSchedule = std::vector<WireStep>;

// The schedule by which `peers`, of which this rank is number `me`, all-reduce `range`. Every element is reduced by one rank,
// or by all in the same order, so all get the same bits. For m peers and n elements:
//   all_pairs          each sends all elements to all others: one step, n (m - 1) elements sent per rank
//   direct             one step in which each reduces a part, one to share them: 2 n (m - 1) / m elements
//   ring               the same volume in 2 (m - 1) steps between neighbours (Patarasuk and Yuan 2009)
//   halving_doubling   the same volume in 2 log2(m) steps (Thakur, Rabenseifner and Gropp 2005); if m is not a power of two,
//                      the ranks beyond the next lower one send all their elements to another rank first
WireSchedule all_reduce_schedule(Algorithm algorithm, std::span<const int> peers, int me, Range range);

// Broadcasts `range` from number `root` of `peers` to all others along a chain, in which chunks follow each other.
WireSchedule broadcast_schedule(std::span<const int> peers, int me, int root, Range range);

// The time of a message of n bytes between two nodes: latency + n x seconds_per_byte.
struct LinkModel {
  double latency_seconds = 0;
  double seconds_per_byte = 0;
};

double all_reduce_seconds(Algorithm algorithm, int nodes, double bytes, const LinkModel& link);  // predicted
Algorithm choose_algorithm(int nodes, double bytes, const LinkModel& link);                      // the fastest one

}  // namespace trireme::comm
