#pragma once

#include <cstddef>
#include <span>

#include "comm/calls/call.hpp"

namespace trireme::comm {

// Elements [begin, end) of a collective, one rank's view. from[r], to[r]: where element `begin` of rank r can be read and
// written. Where `staged`, what is written to others is copied on by them: only all_reduce does that.
struct Portion {
  Call call;
  int me = 0;
  Range range;
  std::span<const std::byte* const> from;
  std::span<std::byte* const> to;
  bool staged = false;
};

// This rank's part of the work: each element is computed by one rank, in rank order, so all ranks get the same bits.
void do_my_part(const Portion& portion);

}  // namespace trireme::comm
