#pragma once

#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/core/setting.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/parallel/parallel_options.hpp"

namespace trireme::parallel {

// Throws where a value makes no sense, or where the model or the mesh does not fit what was asked for.
void check(const ParallelOptions& options, FlatStore& store, const ProcessMesh& mesh);

// What all ranks must have alike, for require_same.
std::vector<Setting> settings_of(const ParallelOptions& options, bool sharded);

const Tuning& tuning_of(const ParallelOptions& options);

// Whether a group reduces gradients where they lie. Of a store on the host a group of GPUs reduces them on the host.
bool reaches(const Group& group, const FlatStore& store);

}  // namespace trireme::parallel
