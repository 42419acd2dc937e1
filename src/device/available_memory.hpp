#pragma once

#include <cstddef>
#include <filesystem>

namespace trireme::device {

// Bytes that this process can still get without another one being killed for them: of the machine, and of each control group
// around the process, a container's or a batch system's. The largest number where the system does not say. `root`: where its
// files are, /proc and /sys.
std::size_t available_host_memory(const std::filesystem::path& root = "/");

}  // namespace trireme::device
