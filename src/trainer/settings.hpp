#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/option_table.hpp"
#include "trireme/checkpoint/checkpoints.hpp"

namespace trireme::trainer {

// A setting of the program.
struct OwnSetting {
  SettingRule rule = {};
  bool of_data = false;  // it describes the data
};

// Compares the settings of a checkpoint with those of this run. Returns lines about differences that are allowed but told;
// throws Error{invalid_argument} with both values for the first one that is refused. A run's setting that the checkpoint lacks
// counts as its default. `own`: the settings of the program.
std::vector<std::string> compare(const checkpoint::Configuration& before, const checkpoint::Configuration& now,
                                 const std::map<std::string, OwnSetting>& own, std::int64_t step);

}  // namespace trireme::trainer
