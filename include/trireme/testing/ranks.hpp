#pragma once

#include <functional>

#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace testing {

// Runs `body` on `ranks` threads, one per rank of a world. Rethrows the error of the lowest rank that failed; an error other
// than peer_failed takes precedence.
void run_ranks(int ranks, const std::function<void(Group)>& body, const LaunchOptions& options = {});

}  // namespace testing
}  // namespace trireme
