#include <chrono>
#include <cmath>

#include "trireme/core/error.hpp"
#include "trireme/ops/optimizer.hpp"
#include "trireme/parallel/data_parallel.hpp"

namespace trireme::parallel {
namespace {

double gradient_norm(FlatStore& store) {
  const auto norm = [&]<typename T>(T) {
    const Tensor<T> gradients = store.gradients<T>();
    return std::sqrt(ops::gradient_norms(gradients.data(), static_cast<std::size_t>(gradients.numel())).sum_of_squares);
  };
  return store.dtype() == DType::float64 ? norm(double{}) : norm(float{});
}

}  // namespace

void Reduction::listen(Tape& tape) {
  require(listened_ < micro_batches_, "a step of {} micro-batches was given one more", micro_batches_);
  if (++listened_ < micro_batches_) return;  // gradients become final in the last one
  missing_.clear();
  for (const auto& bucket : owner_.buckets_) missing_.push_back(static_cast<int>(bucket.parameters.size()));
  used_.assign(owner_.bucket_of_.size(), false);
  tape.listen(owner_.store_, *this);
}

void Reduction::add(double loss_sum, std::int64_t kept, std::int64_t count) {
  require(added_ == 0 || count == count_, "micro-batches of one step hold {} and {} targets; they must be of one size", count_,
          count);
  ++added_;
  loss_sum_ += loss_sum;
  kept_ += kept;
  count_ = count;
}

void Reduction::on_final(int parameter) {
  FlatStore& store = owner_.store_;
  const auto index = static_cast<std::size_t>(parameter);
  used_[index] = store.has_gradient(parameter);
  if (!used_[index]) store.zero_gradient(parameter);
  --missing_[static_cast<std::size_t>(owner_.bucket_of_[index])];
  while (next_bucket_ < missing_.size() && missing_[next_bucket_] == 0) {
    if (owner_.group_.size() > 1) pending_.push_back(owner_.all_reduce(owner_.buckets_[next_bucket_]));
    ++next_bucket_;
  }
  comm::progress();
}

StepSummary Reduction::finish() {
  require(listened_ == micro_batches_ && added_ == micro_batches_,
          "finish() after {} of {} micro-batches: call listen() and add() for each", added_, micro_batches_);
  require(next_bucket_ == owner_.buckets_.size(), "finish() before backward() of the last micro-batch");
  const auto start = std::chrono::steady_clock::now();
  StepSummary summary = reduce_summary();
  for (Pending& bucket : pending_) bucket.wait_on_host();
  summary.exposed_communication_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  summary.gradient_norm = gradient_norm(owner_.store_) * summary.gradient_scale;
  return summary;
}

// The one scalar all-reduce of a step.
StepSummary Reduction::reduce_summary() {
  const auto count = static_cast<double>(count_);
  std::vector<double> values{loss_sum_, static_cast<double>(kept_), count, count * count};
  const std::size_t fixed = values.size();
  for (const bool used : used_) values.push_back(used ? 1 : 0);
  owner_.group_.all_reduce(std::span(values), ReduceOp::sum, "step summary").wait_on_host();

  const auto ranks = static_cast<double>(owner_.group_.size());
  require(ranks * values[3] == values[2] * values[2],
          "the ranks hold micro-batches of different numbers of targets, {} on average; they must be of one size",
          values[2] / ranks);
  StepSummary summary{.loss_sum = values[0], .kept = static_cast<std::int64_t>(values[1])};
  summary.gradient_scale = summary.kept == 0 ? 0 : count / static_cast<double>(summary.kept);
  for (std::size_t index = fixed; index < values.size(); ++index) summary.used.push_back(values[index] > 0);
  return summary;
}

}  // namespace trireme::parallel
