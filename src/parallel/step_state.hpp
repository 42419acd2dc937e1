#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trireme/amp/grad_scaler.hpp"

namespace trireme::parallel {

// The state that changes from step to step, without the model and its buckets.
struct StepState {
  amp::GradScaler scaler;
  std::vector<std::uint64_t> compared_optimizers = {};  // serial numbers of optimizers with the same settings on all ranks
  bool is_open = false;                                 // whether a step is open
  std::int64_t number = -1;                             // of the newest step
  bool is_updated = false;                              // whether the newest step was updated and not skipped
  std::uint64_t earlier_steps = 0;                      // steps that were updated under the same number
  std::int64_t finished_steps = 0;
  std::int64_t exchanges = 0;

  // Opens the step with this number.
  void begin(std::int64_t its_number) {
    if (std::exchange(number, its_number) != its_number) {
      earlier_steps = 0;
    } else if (is_updated) {
      ++earlier_steps;
    }
    is_updated = false;
    is_open = true;
  }
};

}  // namespace trireme::parallel
