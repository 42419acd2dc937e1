#pragma once

#include <functional>
#include <string_view>

#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// action() on one rank of each node, then on the others, which find what the first has left on the node's disk. Where it throws
// on one rank all ranks throw the same. Collective.
void take_turns_on_nodes(const Group& group, const std::function<void()>& action, std::string_view name = {});

}  // namespace trireme
