#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "parallel/replicas/summary_group.hpp"
#include "parallel/step/summary_fields.hpp"
#include "trireme/parallel/step/micro_batch_loss.hpp"

namespace trireme::parallel {

// What the micro-batches of a step add to its loss on this rank.
class Losses {
 public:
  void add(MicroBatchLoss loss, std::int64_t nominal_targets);                       // in a pipeline on the last stage alone
  void add_of_stage(MicroBatchLoss loss) { of_stages_.push_back(std::move(loss)); }  // on others: what layers add

  std::int64_t num_micro_batches() const { return static_cast<std::int64_t>(added_.size()); }  // that have a loss here
  std::int64_t targets() const { return targets_; }                                            // of a micro-batch

  void read();  // the host waits for them
  bool are_finite() const;

  // Adds them to `totals`, which lie on the device, while the host goes on.
  void add_to(StepTotals* totals, const PlaneDevice& device) const;

  // The ranks add them up. Error{invalid_argument} on all of them where some lack a loss, or where their micro-batches are of
  // different sizes.
  void add_to(SummaryFields& fields, const SummaryGroup& ranks, StepSummary& summary) const;

 private:
  void read_sums(std::span<const double> sums, const SummaryGroup& ranks, StepSummary& summary) const;

  std::vector<MicroBatchLoss> added_;  // by micro-batch
  std::vector<MicroBatchLoss> of_stages_;
  std::vector<double> sums_;  // of both, once they are read
  double target_weight_ = 0;
  std::int64_t targets_ = 0;
};

}  // namespace trireme::parallel
