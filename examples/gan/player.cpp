#include "player.hpp"

#include "trireme/optim/named.hpp"

using namespace trireme;

Player::Player(const TrainingOptions& options, const Group& world, FlatStore& store, const std::string& name)
    : data_parallel_(store, ProcessMesh(world.split(0, world.rank(), name)), options.data_parallel()),
      optimizer_(optim::make_optimizer<Float32>(options.optimizer, store, options.optimizer_options())),
      schedule_(options.schedule()),
      clip_norm_(options.clip) {}

StepSummary Player::update(std::int64_t step, parallel::Reduction& reduction, const Loss<float>& loss) {
  loss.backward();
  reduction.add(loss);
  const StepSummary summary = reduction.finish();
  optimizer_->set_learning_rate(schedule_(step));
  optimizer_->step(summary, {.clip_norm = clip_norm_});
  return summary;
}
