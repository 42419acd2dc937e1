#pragma once

#include <functional>

#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace testing {

// Runs `body` on `ranks` threads, each a rank of one world, and rethrows the error of the lowest rank that failed first-hand.
void run_ranks(int ranks, const std::function<void(Group)>& body, const LaunchOptions& options = {});

}  // namespace testing
}  // namespace trireme
