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

void check(const Options& options);  // Error{invalid_argument} names what can't be

// What all ranks must share, and what a checkpoint keeps of a run's options.
optim::Settings settings_of(const Options& options);

// How a setting of a run may differ where it goes on, and what a checkpoint without it was made with.
struct SettingRule {
  Differs differs = Differs::refused;
  std::optional<std::string> absent = {};
};
SettingRule rule_of_setting(const std::string& name);

// What other rooms are told of a run's options.
optim::UpdateOptions update_of(const Options& options);  // but for the learning rate
parallel::ModelContextOptions context_of(const Options& options);
data::BatchOptions batch_of(const Options& options, const ProcessMesh& mesh, const Group& ranks);  // that share the samples

// The highest learning rate of an optimizer that has this one of its own, and the rate of each step; `steps`: of the run, where
// they are known.
double highest_rate_of(const Options& options, double own);
optim::LearningRate rate_of(const Options& options, double highest, const std::optional<std::int64_t>& steps);
void check_several_models(const Options& options);  // Error{invalid_argument} names what is for one model alone

Differs other_data_of(const Options& options);  // whether a run goes on with others than those of its checkpoint

// What the steps of a run are like, in a line; `rates`: the learning rates of its models, in words.
std::string words_of(const Options& options, const std::string& rates, const std::optional<std::int64_t>& steps);

}  // namespace trireme::trainer
