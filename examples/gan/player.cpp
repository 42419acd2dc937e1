#include "player.hpp"

#include <concepts>

#include "trireme/optim/named.hpp"

using namespace trireme;

template <typename P, typename D>
Player<P, D>::Player(const TrainingOptions& options, const Group& world, Model& model, const std::string& name,
                     std::int64_t first_step)
    : model_(model),
      name_(name),
      data_parallel_(model, ProcessMesh(world.split(0, world.rank(), name)), options.data_parallel(first_step)),
      optimizer_(optim::make_optimizer<P, D>(options.optimizer, model, options.optimizer_options())),
      scaler_({.enabled = std::same_as<P, MixedFloat16>}),
      schedule_(options.schedule()),
      step_options_(options.step_options()) {}

template <typename P, typename D>
StepSummary Player<P, D>::update(std::int64_t step, parallel::Reduction& reduction, const Loss<float, D>& loss) {
  scaler_.scale(loss).backward();
  reduction.add(loss);
  StepSummary summary = reduction.finish();
  optimizer_->set_learning_rate(schedule_(step));
  scaler_.unscale(*optimizer_, summary);
  scaler_.step(*optimizer_, summary, step_options_);
  scaler_.update();
  return summary;
}

template <typename P, typename D>
void Player<P, D>::add_to(State& state) {
  model_.store().add_to(state, name_ + ".model.");
  optimizer_->add_to(state, name_ + ".optimizer.");
  scaler_.add_to(state, name_ + ".grad_scaler.");
  data_parallel_.add_to(state, name_ + ".compression.");
}

template class Player<Float32, TRIREME_DEVICE>;
template class Player<MixedBfloat16, TRIREME_DEVICE>;
template class Player<MixedFloat16, TRIREME_DEVICE>;
