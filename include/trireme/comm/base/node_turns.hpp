#pragma once

#include <functional>
#include <string_view>

#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Calls action() on one rank of each node, then on the node's other ranks, which can reuse files that the first rank wrote to
// the node's disk. If action() throws on one rank, all ranks throw the same error. Collective.
void take_turns_on_nodes(const Group& group, const std::function<void()>& action, std::string_view name = {});

}  // namespace trireme
