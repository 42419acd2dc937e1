#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trireme/comm/base/group.hpp"
#include "trireme/data/sources/batch_options.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/trainer/options.hpp"

namespace trireme::trainer {

void check(const Options& options);  // Error{invalid_argument} names a value that is not allowed

// The options that must be the same on all ranks and that a checkpoint keeps.
optim::Settings settings_of(const Options& options);

// What happens if a resumed run has another value of a setting, and the value to assume for a checkpoint that lacks it.
struct SettingRule {
  Differs differs = Differs::refused;
  std::optional<std::string> absent = {};
};
SettingRule rule_of_setting(const std::string& name);

// The options for other rooms.
optim::UpdateOptions update_of(const Options& options);  // without the learning rate
parallel::ModelContextOptions context_of(const Options& options, const ProcessMesh& mesh);
data::BatchOptions batch_of(const Options& options, const ProcessMesh& mesh, const Group& ranks);  // ranks divide the batch

// The highest learning rate of an optimizer whose own rate is `own`, and the rate of each step. `steps`: of the run, if known.
// The factor that a step's batch size puts on this rate.
double highest_rate_of(const Options& options, double own);
double rate_factor_of(const Options& options, std::int64_t step);
optim::LearningRate rate_of(const Options& options, double highest, const std::optional<std::int64_t>& steps);
void check_several_models(const Options& options);  // Error{invalid_argument} names an option that needs a single model

Differs other_data_of(const Options& options);  // what happens if a checkpoint was trained on other data

// A line that describes the steps of a run. `rates`: the learning rates of its models, as text.
std::string words_of(const Options& options, const std::string& rates, const std::optional<std::int64_t>& steps);

}  // namespace trireme::trainer
