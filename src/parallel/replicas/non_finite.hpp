#pragma once

#include <span>

#include "parallel/replicas/summary_group.hpp"
#include "trireme/autograd/flat_store.hpp"
#include "trireme/core/step_summary.hpp"

namespace trireme::parallel {

// Finds where a step's loss or gradients became inf or nan first. `reduced`: the ranges in which this rank holds reduced
// gradients. Collective.
NonFinite find_non_finite(FlatStore& store, std::span<const Range> reduced, bool own_loss_is_finite, const SummaryGroup& ranks);

}  // namespace trireme::parallel
