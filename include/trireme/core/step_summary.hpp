#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Requests of some rank to all ranks at the end of a step, for example after a signal.
struct StepRequests {
  bool stop = false;
  bool checkpoint = false;
};

// Where an inf or nan of a loss or gradient comes from, as far as the ranks can tell.
struct NonFinite {
  std::string parameter = {};   // the first parameter with such a gradient, in backward-pass order; empty: none
  std::vector<int> ranks = {};  // ranks with such a loss; empty: the inf or nan began in a backward pass
};

// Sums over ranks and micro-batches. All fields are doubles, so that a group can reduce them.
struct StepTotals {
  double loss_sum = 0;
  double target_weight = 0;
  double squares = 0;  // sum of the squared gradients
};

// The numbers of a StepSummary.
struct StepNumbers {
  double loss_sum = 0;
  double target_weight = 0;
  double gradient_scale = 1;
  double gradient_norm = 0;
};

// Describes a step whose gradients are reduced, for the optimizer. All numbers are the same on all ranks, except
// exposed_communication_seconds and `store`.
struct StepSummary {
  double loss_sum = 0;                       // over the targets of all ranks and micro-batches
  double target_weight = 0;                  // the sum of the targets' class weights
  double gradient_scale = 1;                 // reduced gradients * gradient_scale = gradients of the mean loss
  double gradient_norm = 0;                  // L2 norm of the gradients of the mean loss, before clipping
  std::vector<bool> used = {};               // for each parameter, whether some rank used it
  StepRequests requests = {};                // from any rank
  double exposed_communication_seconds = 0;  // how long this rank's host waited for other ranks
  std::int64_t step = 0;                     // number of the step, from DataParallel::begin
  std::uint64_t store = 0;                   // FlatStore::serial() of the model; 0 in a summary made by hand
  NonFinite non_finite = {};                 // set unless is_finite()

  // The StepNumbers in GPU memory, until the host reads them. As long as this is not null, the fields with the same names and
  // `non_finite` are not set.
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
