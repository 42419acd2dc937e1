#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint/simulated_file_system.hpp"
#include "trireme/checkpoint/checkpoints.hpp"

// Checkpoints of a SampleState in a simulated file system.
namespace trireme::test {

checkpoint::CheckpointOptions options_on(std::shared_ptr<SimulatedFileSystem> system, bool asynchronous = false);

void save_sample(const Group& world, const std::shared_ptr<SimulatedFileSystem>& system, int layout, std::int64_t step);

// Empty: the state in the newest checkpoint is that of `step`.
std::string load_difference(const Group& world, const std::shared_ptr<SimulatedFileSystem>& system, int layout,
                            std::int64_t step);

}  // namespace trireme::test
