#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "parallel/replicas/summary_group.hpp"
#include "parallel/step/summary_fields.hpp"
#include "trireme/parallel/step/micro_batch_loss.hpp"

namespace trireme::parallel {

// The losses of a step's micro-batches on this rank.
class Losses {
 public:
  void add(MicroBatchLoss loss, std::int64_t nominal_targets);                       // in a pipeline only on the last stage
  void add_of_stage(MicroBatchLoss loss) { of_stages_.push_back(std::move(loss)); }  // on others: losses of layers

  std::int64_t num_micro_batches() const { return static_cast<std::int64_t>(added_.size()); }  // with a loss on this rank
  std::int64_t targets() const { return targets_; }                                            // of a micro-batch

  void read();  // reads all losses; the host waits for a GPU
  bool are_finite() const;

  // Adds the losses to `totals` on the device; the host does not wait.
  void add_to(StepTotals* totals, const PlaneDevice& device) const;

  // Adds a field by which the ranks add up their losses. Reading it throws Error{invalid_argument} on all ranks if some have no
  // loss, or if their micro-batches differ in size.
  void add_to(SummaryFields& fields, const SummaryGroup& ranks, StepSummary& summary) const;

 private:
  void read_sums(std::span<const double> sums, const SummaryGroup& ranks, StepSummary& summary) const;

  std::vector<MicroBatchLoss> added_;  // by micro-batch
  std::vector<MicroBatchLoss> of_stages_;
  std::vector<double> sums_;  // added_, then of_stages_, after read()
  double target_weight_ = 0;
  std::int64_t targets_ = 0;
};

}  // namespace trireme::parallel
