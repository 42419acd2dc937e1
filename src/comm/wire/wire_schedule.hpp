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

// What one rank sends and receives at a time. Received elements replace its own, or are reduced with them: then all receives
// have one range, and `place` counts those that come before this rank's own elements in the order of the reduction. A step that
// receives from one peer leaves it at 0: one rank alone computes each sum of two, and a + b has the bits of b + a.
struct WireStep {
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  bool reduces = false;
  std::size_t place = 0;
};

// One rank's side of a collective between nodes: steps, each after the one before. All ranks have the same number of them.
using WireSchedule = std::vector<WireStep>;

// How `peers`, of whom this rank is number `me`, all-reduce `range`. Every element is reduced by one rank, or by all in the
// same order, so all get the same bits.
//   all_pairs          everyone sends everything to everyone: one step, n (m - 1) elements sent
//   direct             one step to reduce a part each, one to share them: 2 n (m - 1) / m
//   ring               the same volume in 2 (m - 1) steps between neighbours (Patarasuk and Yuan 2009)
//   halving_doubling   the same volume in 2 log2(m) steps (Thakur, Rabenseifner and Gropp 2005); where m is no power of two,
//                      the ranks beyond it hand all their elements to another first
WireSchedule all_reduce_schedule(Algorithm algorithm, std::span<const int> peers, int me, Range range);

// From the holder of `range`, number `root` of `peers`, to all others, along a chain: chunks follow each other.
WireSchedule broadcast_schedule(std::span<const int> peers, int me, int root, Range range);

// The time of a message of n bytes between two nodes: latency + n x seconds_per_byte.
struct LinkModel {
  double latency_seconds = 0;
  double seconds_per_byte = 0;
};

double all_reduce_seconds(Algorithm algorithm, int nodes, double bytes, const LinkModel& link);  // predicted
Algorithm choose_algorithm(int nodes, double bytes, const LinkModel& link);                      // with the least of them

}  // namespace trireme::comm
