#pragma once

#include <memory>
#include <optional>

#include "options.hpp"
#include "training/training.hpp"
#include "trireme/trireme.hpp"

// One rank's part of a training run. D: where it computes.
template <typename D>
class Trainer {
 public:
  // Collective: a wrong option or file is the same error on all ranks.
  Trainer(const Options& options, const trireme::Group& world);

  void run();

 private:
  using Model = trireme::models::LstmLm<trireme::Float32, D>;

  void open(const trireme::ModelContext& context);  // what may fail on one rank alone
  void read_text();
  trireme::data::WindowLoader loader(const trireme::data::TokenDataset& tokens, std::int64_t micro_batch_size) const;
  void backward(trireme::parallel::Step& step);
  void add_to(trireme::State& state);
  Validation validate() const;
  void print_start() const;
  void print_sample() const;

  Options options_;
  trireme::Group world_;
  trireme::ProcessMesh mesh_;
  std::optional<trireme::data::Vocabulary> vocabulary_;
  std::string vocabulary_text_;                       // of the checkpoint, when one is loaded
  std::optional<trireme::data::TrainingSplit> text_;  // nothing: only a sample is asked for
  std::optional<trireme::data::WindowLoader> loader_;
  std::unique_ptr<Model> model_;
};
