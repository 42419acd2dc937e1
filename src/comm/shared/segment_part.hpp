#pragma once

#include <cstddef>
#include <span>

#include "comm/calls/call.hpp"

namespace trireme::comm {

// Elements [begin, end) of a collective, as one rank sees them. from[r], to[r]: where element `begin` of rank r can be read and
// written. `staged`: data written to other ranks' blocks must be copied on by them, which they do for all_reduce only.
struct Portion {
  Call call;
  int me = 0;
  Range range;
  std::span<const std::byte* const> from;
  std::span<std::byte* const> to;
  bool staged = false;
};

// Does this rank's part of the work. Each element is computed by one rank, in rank order, so all ranks get the same bits.
void do_my_part(const Portion& portion);

}  // namespace trireme::comm
