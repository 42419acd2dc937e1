#pragma once

#include <filesystem>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace device {

// Of how many cores the control groups around this process, a container's or a batch system's, give it the time: the quota,
// rounded up. The largest number where there is none. `root`: where the system's files are, /proc and /sys.
int core_quota(const std::filesystem::path& root = "/");

}  // namespace device
}  // namespace trireme
