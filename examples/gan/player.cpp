#include "player.hpp"

#include "trireme/optim/named.hpp"

using namespace trireme;

template <typename P, typename D>
Player<P, D>::Player(const TrainingOptions& options, const Group& world, Model& model, const std::string& name)
    : name_(name),
      data_parallel_(model, ProcessMesh(world.split(0, world.rank(), name)), options.data_parallel()),
      optimizer_(optim::make_optimizer<P, D>(options.optimizer, model, options.optimizer_options())),
      schedule_(options.schedule()),
      update_options_(options.update_options()) {}

template <typename P, typename D>
StepSummary Player<P, D>::update(parallel::Step& step) {
  optim::UpdateOptions update = update_options_;
  update.learning_rate = schedule_(step.number());
  step.update(*optimizer_, update);
  return step.finish();
}

template <typename P, typename D>
void Player<P, D>::add_to(State& state) {
  data_parallel_.add_to(state, name_ + ".");
  optimizer_->add_to(state, name_ + ".optimizer.");
}

template class Player<Float32, TRIREME_DEVICE>;
template class Player<MixedBfloat16, TRIREME_DEVICE>;
template class Player<MixedFloat16, TRIREME_DEVICE>;
