#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "comm/tcp/frame.hpp"

namespace trireme::comm {

// World ranks by group, as the ranks have reported them to the hub.
using MembersOfGroups = std::map<std::uint64_t, std::vector<std::int32_t>>;

std::vector<std::int32_t> members_in(const Frame& frame);

// The fault of a frame that `rank` of `ranks` has sent to the hub; empty if all its numbers are valid.
std::string_view fault_of(const Frame& frame, int rank, int ranks, const MembersOfGroups& members);

}  // namespace trireme::comm
