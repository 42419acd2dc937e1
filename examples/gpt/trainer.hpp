#pragma once

#include <optional>

#include "options.hpp"
#include "training/training.hpp"
#include "trireme/data/tokenizer.hpp"
#include "trireme/data/window_loader.hpp"
#include "trireme/trireme.hpp"

// One rank's part of a training run. P: Float32, MixedBfloat16, MixedFloat16; D: where it computes.
template <typename P, typename D>
class Trainer {
 public:
  // Collective: a wrong option or file is the same error on all ranks.
  Trainer(const Options& options, const trireme::Group& world);

  void run();

 private:
  void open();  // what may fail on one rank alone
  void backward(trireme::parallel::Step& step);
  Validation validate() const;
  void print_start() const;
  void print_sample() const;

  trireme::Group world_;
  Options options_;
  trireme::ProcessMesh mesh_;
  trireme::data::ByteTokenizer tokenizer_;
  std::optional<trireme::data::TrainingSplit> text_;
  std::optional<trireme::data::WindowLoader> loader_;
  trireme::models::Gpt<P, D> model_;
};
