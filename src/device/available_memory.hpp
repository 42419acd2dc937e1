#pragma once

#include <cstddef>
#include <filesystem>

namespace trireme::device {

// The bytes that this process can still allocate without the system killing a process: limited by the machine and by each
// control group of the process (of a container or a batch system). The largest number where the system does not tell. `root` is
// the folder that contains /proc and /sys.
std::size_t available_host_memory(const std::filesystem::path& root = "/");

}  // namespace trireme::device
