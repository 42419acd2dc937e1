#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/trainer/options.hpp"
#include "trireme/trainer/run.hpp"

namespace trireme::trainer {

void check(const Options& options);  // Error{invalid_argument} names what can't be

// What all ranks must share, and what a checkpoint keeps of a run's options.
optim::Settings settings_of(const Options& options);

// Of the program: what happens where it differs, and what a checkpoint without it was made with.
struct OwnSetting {
  Differs differs = Differs::refused;
  std::optional<std::string> absent = {};
  bool of_data = false;  // it says what is read
};

// Compares what a checkpoint was made with and what this run is told: lines about what may differ and is worth telling; `own`:
// the settings of the program. Of a run's own settings one that the checkpoint lacks had its default. An
// Error{invalid_argument} names the first setting that decides what is learnt, with both values.
std::vector<std::string> compare(const checkpoint::Configuration& before, const checkpoint::Configuration& now,
                                 const std::map<std::string, OwnSetting>& own, std::int64_t step);

}  // namespace trireme::trainer
