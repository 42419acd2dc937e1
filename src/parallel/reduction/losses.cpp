#include "parallel/reduction/losses.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "parallel/reduction/micro_batch_sum.hpp"
#include "trireme/core/error.hpp"

namespace trireme::parallel {

void Losses::add(MicroBatchLoss loss, std::int64_t nominal_targets) {
  require(added_.empty() || nominal_targets == targets_,
          "micro-batches of one step hold {} and {} targets; they must be of one size", targets_, nominal_targets);
  added_.push_back(std::move(loss));
  targets_ = nominal_targets;
}

void Losses::read() {
  for (const MicroBatchLoss& loss : added_) {
    const StepTotals totals = loss.read();
    sums_.push_back(totals.loss_sum);
    target_weight_ += totals.target_weight;
  }
  for (const MicroBatchLoss& loss : of_stages_) sums_.push_back(loss.read().loss_sum);
}

bool Losses::are_finite() const {
  return std::ranges::all_of(sums_, [](double sum) { return std::isfinite(sum); });
}

void Losses::add_to(StepTotals* totals, const PlaneDevice& device) const {
  for (const auto* losses : {&added_, &of_stages_}) {
    for (const MicroBatchLoss& loss : *losses) {
      loss.add_to ? loss.add_to(totals) : device.add_totals(loss.read(), totals);
    }
  }
}

void Losses::add_to(SummaryFields& fields, const SummaryGroup& ranks, StepSummary& summary) const {
  fields.add({.size = 5,
              .write =
                  [this, counts = ranks.counts_loss()](std::span<double> own) {
                    const auto targets = static_cast<double>(targets_);
                    own[0] = counts ? tree_sum(sums_) : 0;
                    own[1] = counts ? target_weight_ : 0;
                    own[2] = targets;
                    own[3] = targets * targets;
                    own[4] = added_.empty() ? 0 : 1;
                  },
              .read = [this, &ranks, &summary](std::span<const double> sums) { read_sums(sums, ranks, summary); }});
}

void Losses::read_sums(std::span<const double> sums, const SummaryGroup& ranks, StepSummary& summary) const {
  const double targets = sums[2], squared_targets = sums[3], with_loss = sums[4];
  require(with_loss == ranks.num_loss_ranks(),
          "{} of {} ranks have losses: every rank calls backward(), of a pipeline those of its last stage", with_loss,
          ranks.num_loss_ranks());
  require(with_loss * squared_targets == targets * targets,
          "the ranks hold micro-batches of different numbers of targets, {} on average; they must be of one size, or shares of "
          "the batch that parallel::model_context(mesh, {{.batch_size = ...}}) knows",
          targets / with_loss);
  summary.loss_sum = sums[0];
  summary.target_weight = sums[1];
  summary.gradient_scale = summary.target_weight == 0 ? 0 : targets / with_loss / summary.target_weight;
}

}  // namespace trireme::parallel
