#include <chrono>
#include <cmath>

#include "parallel/bucket_tuner.hpp"
#include "parallel/gradient_tree.hpp"
#include "parallel/hooked_buckets.hpp"
#include "parallel/planes.hpp"
#include "parallel/sharding.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/reduce.hpp"
#include "trireme/parallel/data_parallel.hpp"

namespace trireme::parallel {
namespace {

double sum_of_squares(FlatStore& store, const Range& range) {
  return with_gradients(store, range, [](auto gradients) { return ops::sum_of_squares(gradients.data(), gradients.size()); });
}

}  // namespace

Reduction::Reduction(DataParallel& owner, int micro_batches, std::shared_ptr<HookedBuckets> hooked)
    : owner_(owner), micro_batches_(micro_batches), used_(owner.bucket_of_.size(), false), hooked_(std::move(hooked)) {}

void Reduction::listen(Tape& tape) {
  require(listened_ < micro_batches_, "a step of {} micro-batches was given one more", micro_batches_);
  if (owner_.tree_ != nullptr && listened_ > 0) {
    for (std::size_t index = 0; index < used_.size(); ++index) {
      used_[index] = used_[index] || owner_.store_.has_gradient(static_cast<int>(index));
    }
    owner_.tree_->push();
  }
  if (++listened_ < micro_batches_) return;  // gradients become final in the last one
  if (owner_.tuner_ != nullptr) owner_.tuner_->begin();
  for (const auto& bucket : owner_.buckets_) missing_.push_back(static_cast<int>(bucket.parameters.size()));
  tape.listen(owner_.store_, *this);
}

void Reduction::add(double loss_sum, double kept, std::int64_t count) {
  require(added_ == 0 || count == count_, "micro-batches of one step hold {} and {} targets; they must be of one size", count_,
          count);
  ++added_;
  losses_.push_back(loss_sum);
  kept_ += kept;
  count_ = count;
}

void Reduction::on_final(int parameter) {
  FlatStore& store = owner_.store_;
  const auto index = static_cast<std::size_t>(parameter);
  if (owner_.tuner_ != nullptr) owner_.tuner_->final(static_cast<std::size_t>(owner_.position_of_[index]));
  if (owner_.steps_ == 1) owner_.ready_position_[index] = finals_++;
  const bool used_last = store.has_gradient(parameter);
  used_[index] = used_[index] || used_last;
  if (!used_last) store.zero_gradient(parameter);
  if (owner_.tree_ != nullptr) {
    const ParameterInfo& info = store.parameter(parameter);
    owner_.tree_->complete({info.offset, info.offset + info.numel});
  }
  --missing_[static_cast<std::size_t>(owner_.bucket_of_[index])];
  while (next_bucket_ < missing_.size() && missing_[next_bucket_] == 0) {
    bool launched = true;
    if (hooked_ != nullptr) {
      hooked_->launch(owner_.buckets_[next_bucket_]);
    } else {
      launched = owner_.reduce(next_bucket_, pending_);
    }
    if (launched) ++next_bucket_;
    advance();
  }
  advance();
}

void Reduction::advance() {
  comm::progress();
  if (hooked_ != nullptr) hooked_->advance();
  take_norms(false);
}

// Of this rank's part of each slice as soon as it is reduced: it still lies in the cache.
void Reduction::take_norms(bool wait) {
  if (owner_.shard_ == nullptr) return;
  for (; next_norm_ < pending_.size(); ++next_norm_) {
    if (wait) wait_for(pending_[next_norm_]);
    if (!pending_[next_norm_].done()) return;
    sum_of_squares_ += sum_of_squares(owner_.store_, owner_.shard_->ranges()[next_norm_]);
  }
}

StepSummary Reduction::finish() {
  require(listened_ == micro_batches_ && added_ == micro_batches_,
          "finish() after {} of {} micro-batches: call listen() and add() for each", added_, micro_batches_);
  require(next_bucket_ == owner_.buckets_.size(), "finish() before backward() of the last micro-batch");
  if (hooked_ != nullptr) hooked_->finish([this](Pending& pending) { wait_for(pending); });
  take_norms(true);
  StepSummary summary = reduce_summary();
  Pending buffers = owner_.average_buffers();
  for (Pending& bucket : pending_) wait_for(bucket);
  wait_for(buffers);
  if (owner_.tuner_ != nullptr) owner_.tuner_->end();
  summary.exposed_communication_seconds = waited_seconds_;
  if (owner_.shard_ == nullptr) sum_of_squares_ = sum_of_squares(owner_.store_, {0, owner_.store_.trainable_numel()});
  summary.gradient_norm = std::sqrt(sum_of_squares_) * summary.gradient_scale;
  return summary;
}

void Reduction::wait_for(Pending& pending) {
  const auto start = std::chrono::steady_clock::now();
  pending.wait_on_host();
  waited_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The one scalar all-reduce of a step.
StepSummary Reduction::reduce_summary() {
  const auto count = static_cast<double>(count_);
  std::vector<double> values{tree_sum(losses_), kept_, count, count * count, sum_of_squares_};
  const std::size_t fixed = values.size();
  for (const bool used : used_) values.push_back(used ? 1 : 0);
  Pending sum = owner_.group_.all_reduce(std::span(values), owner_.sum(), "step summary");
  wait_for(sum);

  const auto ranks = static_cast<double>(owner_.group_.size());
  require(ranks * values[3] == values[2] * values[2],
          "the ranks hold micro-batches of different numbers of targets, {} on average; they must be of one size",
          values[2] / ranks);
  sum_of_squares_ = values[4];
  StepSummary summary{.loss_sum = values[0], .kept = values[1]};
  summary.gradient_scale = summary.kept == 0 ? 0 : count / summary.kept;
  for (std::size_t index = fixed; index < values.size(); ++index) summary.used.push_back(values[index] > 0);
  return summary;
}

}  // namespace trireme::parallel
