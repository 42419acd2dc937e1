#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/option_table.hpp"
#include "trireme/checkpoint/checkpoints.hpp"

namespace trireme::trainer {

// Of the program.
struct OwnSetting {
  SettingRule rule = {};
  bool of_data = false;  // it says what is read
};

// Compares what a checkpoint was made with and what this run is told: lines about what may differ and is worth telling; `own`:
// the settings of the program. Of a run's own settings one that the checkpoint lacks had its default. An
// Error{invalid_argument} names the first setting that decides what is learnt, with both values.
std::vector<std::string> compare(const checkpoint::Configuration& before, const checkpoint::Configuration& now,
                                 const std::map<std::string, OwnSetting>& own, std::int64_t step);

}  // namespace trireme::trainer
