#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trireme/amp/grad_scaler.hpp"

namespace trireme::parallel {

// What changes from step to step, beside the model itself and its buckets.
struct StepState {
  amp::GradScaler scaler;
  std::vector<std::uint64_t> compared_optimizers = {};  // their serials: all ranks have the same settings
  bool is_open = false;                                 // a step is
  std::int64_t number = -1;                             // of the newest one
  bool is_updated = false;                              // the newest one was, and was not skipped
  std::uint64_t earlier_steps = 0;                      // that were updated under the same number
  std::int64_t finished_steps = 0;
  std::int64_t exchanges = 0;

  // The step with this number is open.
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
