#pragma once

#include <string>
#include <string_view>

#include "trireme/comm/base/group.hpp"

namespace trireme::checkpoint {

// Returns rank 0's text on all ranks. Collective.
std::string broadcast_text(const Group& group, std::string text, std::string_view name);

}  // namespace trireme::checkpoint
