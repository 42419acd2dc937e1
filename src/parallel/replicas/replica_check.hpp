#pragma once

#include "trireme/autograd/flat_store.hpp"
#include "trireme/comm/base/group.hpp"

namespace trireme::parallel {

// Checks that all ranks hold the same parameters and buffers with the same values: Error{rank_mismatch} names the one that
// differs. Collective.
void require_same_replicas(FlatStore& store, const Group& group);

// The same for ranks of a tensor or expert axis, which hold different parts of some parameters.
void require_matching_parts(FlatStore& store, const Group& group);

// The same for the stages of a pipeline that hold a tied parameter.
void require_same_ties(FlatStore& store, const Group& pipeline);

}  // namespace trireme::parallel
