#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "comm/tcp/frame.hpp"

namespace trireme::comm {

// World ranks by group, as the ranks have told the hub.
using MembersOfGroups = std::map<std::uint64_t, std::vector<std::int32_t>>;

std::vector<std::int32_t> members_in(const Frame& frame);

// What is wrong with a frame that `rank` of `ranks` has sent to the hub; empty: nothing. After that all its numbers may be
// used.
std::string_view fault_of(const Frame& frame, int rank, int ranks, const MembersOfGroups& members);

}  // namespace trireme::comm
