#pragma once

#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/core/setting.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/parallel/parallel_options.hpp"

namespace trireme::parallel {

// Throws if a value is not allowed, or if the model or the mesh does not fit the options.
void check(const ParallelOptions& options, FlatStore& store, const ProcessMesh& mesh);

// The settings that must be the same on all ranks, for require_same.
std::vector<Setting> settings_of(const ParallelOptions& options, bool sharded);

const Tuning& tuning_of(const ParallelOptions& options);

// Whether the group's memory() is on the same device as the store. A group of GPUs reduces a store on the host through the
// host's group.
bool reaches(const Group& group, const FlatStore& store);

}  // namespace trireme::parallel
