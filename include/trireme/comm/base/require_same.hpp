#pragma once

#include <string_view>
#include <vector>

#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/setting.hpp"

namespace trireme TRIREME_EXPORT {

// Throws the same Error{rank_mismatch} on every rank unless all ranks pass the same names and values, in the same order. The
// error names the first entry that differs, both values, and the ranks that hold each value. `what` is the word for an entry,
// such as "parameter". Collective.
void require_same(const Group& group, std::string_view what, const std::vector<Setting>& entries);

}  // namespace trireme
