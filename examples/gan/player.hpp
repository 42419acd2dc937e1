#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "training/decisions.hpp"
#include "training/options.hpp"
#include "trireme/autograd/functions.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/parallel/data_parallel.hpp"

// One of a GAN's two models in training: its reduction over the ranks, its optimizer and the scale of its loss, apart from
// those of the other one. P: Float32, MixedBfloat16, MixedFloat16, which has its loss scaled; D: where its
// model lies.
template <typename P, typename D>
class Player {
 public:
  // Collective. The parameters have their first values.
  Player(const TrainingOptions& options, const trireme::Group& world, trireme::Model& model, const std::string& name);
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  trireme::parallel::Step begin(std::int64_t number) { return data_parallel_.begin(number); }
  trireme::StepSummary update(trireme::parallel::Step& step);

  void add_to(trireme::State& state);  // what a checkpoint keeps, under the player's name

  std::vector<std::string> decisions() { return decisions_.take(); }
  const trireme::amp::GradScaler& scaler() const { return data_parallel_.scaler(); }
  std::int64_t skipped_steps() const { return optimizer_->skipped_steps(); }
  double learning_rate() const { return optimizer_->learning_rate(); }
  std::uint64_t bytes_sent() const { return data_parallel_.bytes_sent(); }

 private:
  std::string name_;
  trireme::parallel::DataParallel data_parallel_;
  Decisions decisions_{data_parallel_};
  std::unique_ptr<trireme::optim::Optimizer<P, D>> optimizer_;
  trireme::optim::LearningRate schedule_;
  trireme::optim::UpdateOptions update_options_;
};
