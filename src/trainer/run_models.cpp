#include "trainer/run_models.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"

namespace trireme::trainer {

void RunModels::require_free(const Model& model, const optim::AnyOptimizer* optimizer, const std::string& prefix) const {
  for (const RunModel& each : models_) {
    require(each.model != &model, "this model was added to the run before");
    require(optimizer == nullptr || each.optimizer != optimizer,
            "this optimizer was added to the run before, with another model");
    require(each.prefix != prefix,
            "the models of a run have prefixes that differ, \"generator.\" and \"discriminator.\": \"{}\" is taken", prefix);
  }
}

const RunModel* RunModels::first_trained() const {
  const auto found = std::ranges::find_if(models_, [](const RunModel& each) { return each.optimizer != nullptr; });
  return found == models_.end() ? nullptr : &*found;
}

void RunModels::add_to(State& state) {
  for (const RunModel& each : models_) {
    if (each.optimizer == nullptr) {
      each.model->store().add_to(state, each.prefix + "model.");
      continue;
    }
    each.replicas->add_to(state, each.prefix);
    each.optimizer->add_to(state, each.prefix + "optimizer.");
  }
  for (const auto& more : kept_) more(state);
}

}  // namespace trireme::trainer
