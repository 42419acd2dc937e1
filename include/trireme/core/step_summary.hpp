#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// What some rank asks all ranks to do after a step, for reasons that only it knows: a signal, a clock.
struct StepRequests {
  bool stop = false;
  bool checkpoint = false;
};

// Where a loss or gradient that is inf or nan comes from, as far as the ranks can tell.
struct NonFinite {
  std::string parameter = {};   // the first with such a gradient, in the order of the backward pass; empty: none has
  std::vector<int> ranks = {};  // whose own loss is inf or nan; none: it began in a backward pass
};

// What ranks and micro-batches add up to, of doubles alone: a group can reduce it.
struct StepTotals {
  double loss_sum = 0;
  double target_weight = 0;
  double squares = 0;  // of the gradients
};

// The numbers of a summary.
struct StepNumbers {
  double loss_sum = 0;
  double target_weight = 0;
  double gradient_scale = 1;
  double gradient_norm = 0;
};

// What all ranks know of a step once its gradients are reduced; the optimizer's input.
struct StepSummary {
  double loss_sum = 0;                       // over the counted targets of all ranks and micro-batches
  double target_weight = 0;                  // how many, each counted by the weight of its class
  double gradient_scale = 1;                 // times the reduced gradients: those of the mean loss
  double gradient_norm = 0;                  // L2 norm of the gradients of the mean loss, before clipping
  std::vector<bool> used = {};               // by parameter: some rank used it
  StepRequests requests = {};                // of any rank
  double exposed_communication_seconds = 0;  // this rank waited that long for others; what its GPU waits does not count
  std::int64_t step = 0;                     // of DataParallel::begin
  std::uint64_t store = 0;                   // FlatStore::serial() of the model; 0 in one that was made by hand
  NonFinite non_finite = {};                 // unless is_finite()

  // In a GPU's memory, where the host has not asked for the numbers: then those above mean nothing yet.
  std::shared_ptr<const StepNumbers> on_device = {};

  StepNumbers numbers() const {
    return {
        .loss_sum = loss_sum, .target_weight = target_weight, .gradient_scale = gradient_scale, .gradient_norm = gradient_norm};
  }
  void set(const StepNumbers& numbers) {
    loss_sum = numbers.loss_sum;
    target_weight = numbers.target_weight;
    gradient_scale = numbers.gradient_scale;
    gradient_norm = numbers.gradient_norm;
  }

  double loss() const { return target_weight == 0 ? 0.0 : loss_sum / target_weight; }
  bool is_finite() const { return std::isfinite(loss_sum) && std::isfinite(gradient_norm); }
};

}  // namespace trireme
