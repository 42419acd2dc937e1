#pragma once

#include <cstdint>
#include <optional>

#include "parallel/data_parallel_parts.hpp"
#include "parallel/reduction/reduction.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/parallel/step/open_step.hpp"

namespace trireme::parallel {

// The OpenStep of DataParallel.
class DataParallelStep final : public OpenStep {
 public:
  // recording: null unless a StepGraph may record the step. Collective.
  DataParallelStep(DataParallel::Parts& parts, std::int64_t number, int micro_batches, StepRecording* recording);

  const Model& model() const override { return parts_.replicas.model; }
  const amp::GradScaler& scaler() const override { return parts_.state.scaler; }
  std::optional<std::int64_t> samples_of_micro_batch() const override;
  void set_samples(std::int64_t all) override { samples_ = all; }
  TapeOptions names_of(const BatchSamples& samples) const override;
  std::int64_t weighed(std::int64_t targets) const override;

  void listen(Tape& tape) override { reduction_->listen(tape); }
  void add(MicroBatchLoss loss, std::int64_t nominal_targets) override;
  void add_of_stage(MicroBatchLoss loss) override;
  void check(const StagePasses& passes) const override;
  void run_stages(StagePasses& passes) override { parts_.pipeline->run(passes); }

  void ask(const StepRequests& requests) override { reduction_->request(requests); }
  const StepSummary& finish() override;
  const StepSummary* summary() const override { return summary_ ? &*summary_ : nullptr; }
  void check(const optim::UpdateOptions& options) const override;
  bool update(optim::AnyOptimizer& optimizer, const optim::UpdateOptions& options) override;
  void give_up() noexcept override;

 private:
  BatchRows rows() const;  // the rows of this step, where ranks share a batch unevenly
  void compare(const optim::AnyOptimizer& optimizer);
  void set_learning_rate(optim::AnyOptimizer& optimizer, std::optional<double> rate);
  void tell_metrics(const optim::AnyOptimizer& optimizer, bool updated) const;

  DataParallel::Parts& parts_;
  std::int64_t number_;
  Stopwatch since_begin_;
  std::uint64_t sent_before_;  // bytes
  StepRecording* recording_;
  StreamCalls calls_;
  std::optional<std::int64_t> samples_;  // of all ranks together
  std::optional<Reduction> reduction_;   // until the step ends
  std::optional<StepSummary> summary_;   // from finish() on
};

}  // namespace trireme::parallel
