#pragma once

#include <memory>
#include <optional>
#include <string>

#include "metrics.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "trireme/data/tokenizer.hpp"
#include "trireme/data/window_loader.hpp"
#include "trireme/trireme.hpp"

// One rank's part of a training run.
class Trainer {
 public:
  // Collective: a wrong option or file is the same error on all ranks.
  Trainer(const Options& options, const trireme::Group& world);

  void run();

 private:
  void open();  // what may fail on one rank alone
  trireme::StepSummary train_step(std::int64_t step);
  double validate() const;
  void report(const trireme::parallel::BucketTuning& tuning);
  void report(const StepMetrics& metrics);
  void print_start() const;
  void print_end(double seconds) const;
  void print_sample() const;

  Options options_;
  trireme::Group world_;
  trireme::data::ByteTokenizer tokenizer_;
  std::optional<trireme::data::TrainingSplit> text_;
  std::optional<trireme::data::WindowLoader> loader_;
  std::unique_ptr<MetricsFile> metrics_;
  trireme::models::Gpt<trireme::Float32> model_;
  std::unique_ptr<trireme::parallel::DataParallel> data_parallel_;
  std::unique_ptr<trireme::optim::AdamW<trireme::Float32>> optimizer_;
  trireme::optim::Schedule schedule_;
  std::unique_ptr<Progress> progress_;
  StepMetrics first_ = {};
  StepMetrics last_ = {};
  double exposed_seconds_ = 0;
};
