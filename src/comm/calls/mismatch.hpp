#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/calls/members.hpp"
#include "trireme/core/error.hpp"

namespace trireme::comm {

// The error that every rank throws if the ranks' calls with number `sequence` differ. `calls`: the text of each rank's call.
Error mismatch_error(const std::vector<std::string>& calls, const Members& members, std::uint64_t sequence);

}  // namespace trireme::comm
