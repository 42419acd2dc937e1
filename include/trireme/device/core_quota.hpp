#pragma once

#include <filesystem>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace device {

// The CPU quota of this process's control groups (of a container or a batch system), in cores, rounded up. Returns the largest
// int if there is no quota. `root` is the folder that contains /proc and /sys.
int core_quota(const std::filesystem::path& root = "/");

}  // namespace device
}  // namespace trireme
