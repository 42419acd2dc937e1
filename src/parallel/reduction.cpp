#include "parallel/reduction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "parallel/bucket_reduction.hpp"
#include "parallel/bucket_tuner.hpp"
#include "parallel/micro_batch_sum.hpp"
#include "parallel/non_finite.hpp"
#include "parallel/planes.hpp"
#include "parallel/replica_comparison.hpp"
#include "parallel/square_sum.hpp"
#include "parallel/summary_group.hpp"
#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/stopwatch.hpp"

namespace trireme::parallel {

namespace {

// What all ranks of an expert axis hold of a bucket. Gaps go with the parameter before them.
std::vector<Range> ranges_beside_experts(FlatStore& store, const Bucket& bucket) {
  std::vector<Range> ranges;
  bool goes_on = false;
  for (const int index : bucket.parameters) {
    const ParameterInfo& parameter = store.parameter(index);
    const bool shared = !parameter.placement.split();
    const Range range{parameter.offset, parameter.offset + parameter.numel};
    if (shared && goes_on) ranges.back().end = range.end;
    if (shared && !goes_on) ranges.push_back(range);
    goes_on = shared;
  }
  return ranges;
}

}  // namespace

template <typename Wait>
void Reduction::count_waiting(const Wait& wait) {
  const Stopwatch stopwatch;
  wait();
  waited_seconds_ += stopwatch.seconds();
}

Reduction::Reduction(DataParallel& owner, int micro_batches, std::unique_ptr<BucketSums> sums)
    : owner_(owner),
      micro_batches_(micro_batches),
      used_(owner.bucket_of_.size(), false),
      sums_(std::move(sums)),
      squares_(std::make_unique<SquareSum>(owner.micro_batch_sum_->fixed_bits())) {
  for (std::size_t bucket = 0; owner.expert_ != nullptr && bucket < owner.buckets_.size(); ++bucket) {
    tied_.push_back({.ranks = owner.expert_.get(),
                     .bucket = bucket,
                     .shared = ranges_beside_experts(owner.store_, owner.buckets_[bucket]),
                     .name = owner.buckets_[bucket].name});
  }
  for (const auto& [parameter, ranks] : owner.tied_) {
    if (parameter < 0) continue;
    const auto bucket = static_cast<std::size_t>(owner.bucket_of_[static_cast<std::size_t>(parameter)]);
    tied_.push_back({.ranks = ranks.get(),
                     .bucket = bucket,
                     .shared = {owner.buckets_[bucket].range},
                     .name = owner.store_.parameter(parameter).name});
  }
}

Reduction::~Reduction() = default;

void Reduction::give_up() {
  if (finished_) return;
  if (owner_.tuner_ != nullptr) owner_.tuner_->give_up();
  sums_->finish([this](Pending& pending) { wait_for(pending); });
  sum_tied(true);
}

void Reduction::listen(Tape& tape) {
  require(listened_ < micro_batches_, "a step of {} micro-batches was given one more", micro_batches_);
  owner_.compare_evaluation();
  if (listened_ > 0) {
    for (std::size_t index = 0; index < used_.size(); ++index) {
      used_[index] = used_[index] || owner_.store_.has_gradient(static_cast<int>(index));
    }
    owner_.micro_batch_sum_->begin_next();
  }
  if (++listened_ < micro_batches_) return;  // gradients become final in the last one
  if (owner_.tuner_ != nullptr) owner_.tuner_->begin();
  for (const auto& bucket : owner_.buckets_) missing_.push_back(static_cast<int>(bucket.parameters.size()));
  tape.listen(owner_.store_, *this);
}

void Reduction::add(Step::MicroBatchLoss loss, std::int64_t count) {
  require(added_.empty() || count == count_, "micro-batches of one step hold {} and {} targets; they must be of one size",
          count_, count);
  added_.push_back(std::move(loss));
  count_ = count;
}

void Reduction::on_final(int parameter) {
  FlatStore& store = owner_.store_;
  const auto index = static_cast<std::size_t>(parameter);
  if (owner_.tuner_ != nullptr) owner_.tuner_->final(static_cast<std::size_t>(owner_.block_of_[index]));
  if (owner_.ready_order_ == DataParallel::ReadyOrder::unknown) owner_.ready_position_[index] = finals_++;
  const bool used_last = store.has_gradient(parameter);
  used_[index] = used_[index] || used_last;
  if (!used_last) store.zero_gradient(parameter);
  store.set_gradient_final(parameter);
  const ParameterInfo& info = store.parameter(parameter);
  owner_.micro_batch_sum_->complete({info.offset, info.offset + info.numel});
  --missing_[static_cast<std::size_t>(owner_.bucket_of_[index])];
  launch_complete();
  advance();
}

bool Reduction::reduced_over_replicas(std::size_t bucket, bool wait) {
  if (bucket >= next_bucket_) return false;
  for (std::size_t range = 0; range < sums_->held(bucket).size(); ++range) {
    if (wait) {
      sums_->wait_for(bucket, range, [this](Pending& pending) { wait_for(pending); });
    } else if (!sums_->is_done(bucket, range)) {
      return false;
    }
  }
  return true;
}

// Whether what is added up next is there: sums over the replicas; for stages, those over the expert axis too, if there is one.
bool Reduction::sums_before_done(const Tied& tied, bool wait) {
  const auto before = std::ranges::find(tied_, tied.bucket, &Tied::bucket);
  return &*before == &tied ? reduced_over_replicas(tied.bucket, wait) : before->done;
}

void Reduction::sum_tied(bool wait) {
  for (Tied& tied : tied_) {
    if (!sum_tied(tied, wait)) return;
  }
}

// Of what this rank holds of it, which other ranks hold too. Whether that has begun.
bool Reduction::sum_tied(Tied& tied, bool wait) {
  if (tied.done) return true;
  if (!tied.begun && !sums_before_done(tied, wait)) return false;
  if (!std::exchange(tied.begun, true)) {
    // Replicas add this up in groups of their own, which nodes may divide differently. A sum of two is the same anyway.
    const ReduceOp op = owner_.sharded() || tied.ranks->size() == 2 ? ReduceOp::sum : ReduceOp::fixed_sum;
    for (const Range& held : sums_->held(tied.bucket)) {
      for (const Range& shared : tied.shared) {
        const Range range{std::max(held.begin, shared.begin), std::min(held.end, shared.end)};
        if (range.count() <= 0) continue;
        with_gradients(owner_.store_, range,
                       [&](auto gradients) { tied.sums.push_back(tied.ranks->all_reduce(gradients, op, tied.name)); });
      }
    }
  }
  if (wait) {
    for (Pending& sum : tied.sums) wait_for(sum);
  }
  tied.done = std::ranges::all_of(tied.sums, [&](Pending& sum) { return wait || sum.done(); });
  return true;
}

void Reduction::launch_complete() {
  while (next_bucket_ < missing_.size() && missing_[next_bucket_] == 0) {
    if (sums_->launch()) ++next_bucket_;
    advance();
  }
}

void Reduction::advance() {
  comm::progress();
  sums_->advance();
  sum_tied(false);
  take_norms(false);
}

// Of this rank's part of each slice as soon as it is reduced, while it lies in the cache; a GPU would make the host wait for
// the backward pass, so there it is at the end.
void Reduction::take_norms(bool wait) {
  if (!owner_.sharded() || (!wait && !owner_.store_.on_host())) return;
  for (; next_norm_bucket_ < next_bucket_; ++next_norm_bucket_, next_norm_range_ = 0) {
    const std::size_t bucket = next_norm_bucket_;
    const std::span<const Range> held = sums_->held(bucket);
    for (; next_norm_range_ < held.size(); ++next_norm_range_) {
      if (wait) sums_->wait_for(bucket, next_norm_range_, [this](Pending& pending) { wait_for(pending); });
      if (!wait && !sums_->is_done(bucket, next_norm_range_)) return;
      if (std::ranges::any_of(tied_, [&](const Tied& tied) { return tied.bucket == bucket && !tied.done; })) return;
      if (sums_->counts(bucket)) squares_->add(*owner_.summary_, held[next_norm_range_]);
    }
  }
}

// All that backward has left to do.
void Reduction::launch_rest() {
  const bool all_added = std::ssize(added_) == micro_batches_;
  require(listened_ == micro_batches_ && (all_added || (added_.empty() && !owner_.summary_->whole_model())),
          "finish() after {} of {} micro-batches: call backward() for each", added_.size(), micro_batches_);
  launch_complete();
}

void Reduction::read_losses() {
  for (const Step::MicroBatchLoss& loss : added_) {
    const StepTotals totals = loss.read();
    losses_.push_back(totals.loss_sum);
    target_weight_ += totals.target_weight;
  }
  for (const Step::MicroBatchLoss& loss : of_stages_) losses_.push_back(loss.read().loss_sum);
}

StepSummary Reduction::finish() {
  launch_rest();
  read_losses();
  sums_->finish([this](Pending& pending) { wait_for(pending); });
  sum_tied(true);
  take_norms(true);
  // Replicas take the norm of what all of them hold afterwards; parts of a model have to tell each other theirs.
  const Range all{0, owner_.store_.trainable_numel()};
  const bool parts_of_norm = owner_.sharded() || !owner_.summary_->whole_model();
  if (parts_of_norm && !owner_.sharded()) {
    wait_for_buckets();
    if (owner_.summary_->first_replica()) squares_->add(*owner_.summary_, all);
  }
  StepSummary summary = reduce_summary(false);
  std::vector<Pending> buffers = owner_.reduce_buffers();
  wait_for_buckets();
  for (Pending& run : buffers) wait_for(run);
  if (owner_.tuner_ != nullptr) owner_.tuner_->end();
  end();
  summary.exposed_communication_seconds = waited_seconds_;
  if (!parts_of_norm) squares_->add(*owner_.summary_, all);
  summary.gradient_norm = std::sqrt(squares_->value()) * summary.gradient_scale;
  if (!summary.is_finite()) {
    const bool finite = std::ranges::all_of(losses_, [](double loss) { return std::isfinite(loss); });
    const auto shard = owner_.reduction_->shard();
    const std::span<const Range> reduced = shard ? std::span(shard->ranges()) : std::span(&all, 1);
    summary.non_finite = find_non_finite(owner_.store_, reduced, finite, *owner_.summary_);
  }
  return summary;
}

void Reduction::end() {
  finished_ = true;
  ++owner_.finished_steps_;
  if (owner_.ready_order_ == DataParallel::ReadyOrder::unknown) owner_.ready_order_ = DataParallel::ReadyOrder::noted;
}

StepSummary Reduction::finish_on_device() {
  FlatStore& store = owner_.store_;
  if (store.on_host() || owner_.has_fixed_bits() || !owner_.summary_->whole_model()) return finish();
  launch_rest();
  const PlaneDevice& device = store.device();
  const device::Storage totals_there(device.memory(), sizeof(StepTotals));
  auto* totals = static_cast<StepTotals*>(totals_there.data());
  device.zero(totals, sizeof(StepTotals));
  for (const auto* losses : {&added_, &of_stages_}) {
    for (const Step::MicroBatchLoss& loss : *losses) {
      loss.add_to ? loss.add_to(totals) : device.add_totals(loss.read(), totals);
    }
  }
  const auto add_squares = [&](const Range& range) {
    device.add_squares(store.gradient_plane(), store.dtype(), range, totals);
  };
  wait_for_buckets();
  if (owner_.sharded()) std::ranges::for_each(owner_.reduction_->shard()->ranges(), add_squares);
  Pending sum;
  if (owner_.group_.size() > 1) sum = owner_.group_.all_reduce(std::span(&totals->loss_sum, 3), ReduceOp::sum, "step totals");
  std::vector<Pending> buffers = owner_.reduce_buffers();
  wait_for(sum);
  for (Pending& run : buffers) wait_for(run);
  if (!owner_.sharded()) add_squares({0, store.trainable_numel()});
  const auto numbers = std::make_shared<device::Storage>(device.memory(), sizeof(StepNumbers));
  auto* numbers_there = static_cast<StepNumbers*>(numbers->data());
  device.summarize(totals, static_cast<double>(count_), numbers_there);
  StepSummary summary = reduce_summary(true);
  summary.exposed_communication_seconds = waited_seconds_;
  summary.on_device = std::shared_ptr<const StepNumbers>(numbers, numbers_there);
  end();
  return summary;
}

void Reduction::wait_for(Pending& pending) {
  count_waiting([&] { pending.wait_on_stream(); });
}

void Reduction::wait_for_buckets() {
  for (std::size_t bucket = 0; bucket < next_bucket_; ++bucket) reduced_over_replicas(bucket, true);
}

// The one scalar all-reduce of a step on the host. Where the numbers stay on a GPU it tells what the host knows without them.
StepSummary Reduction::reduce_summary(bool on_device) {
  const SummaryGroup& ranks = *owner_.summary_;
  const bool counts = ranks.counts_loss();
  const auto count = static_cast<double>(count_);
  std::vector<double> values{counts ? tree_sum(losses_) : 0, counts ? target_weight_ : 0, count, count * count,
                             added_.empty() ? 0.0 : 1.0};
  const std::size_t first_square = values.size();
  values.resize(first_square + squares_->num_terms());
  squares_->write(std::span(values).subspan(first_square));
  const std::size_t first_used = values.size() + ranks.first_parameter();
  values.resize(values.size() + ranks.num_parameters(), 0.0);
  for (std::size_t index = 0; index < used_.size(); ++index) values[first_used + index] = used_[index] ? 1 : 0;
  const std::size_t first_request = values.size();
  for (const bool request : {requests_.stop, requests_.checkpoint}) values.push_back(request ? 1 : 0);
  // All stages update a tied parameter where one of them used it.
  const std::size_t tied_used = values.size();
  for (const auto& [parameter, holders] : owner_.tied_) {
    values.push_back(parameter >= 0 && used_[static_cast<std::size_t>(parameter)] ? 1 : 0);
  }
  const std::int64_t step = owner_.step_;
  const std::size_t first_number = values.size();
  const auto number = static_cast<double>(step % 4093);  // its square and the sums stay exact
  values.insert(values.end(), {number, number * number});
  const std::size_t first_compared = values.size();
  const ReplicaComparison* comparison = on_device ? nullptr : owner_.comparison_.get();
  if (comparison != nullptr) comparison->append(values, owner_.finished_steps_);
  Pending sum = ranks.group().all_reduce(std::span(values), owner_.micro_batch_sum_->op(), "step summary");
  wait_for(sum);

  const auto size = static_cast<double>(ranks.group().size());
  if (size * values[first_number + 1] != values[first_number] * values[first_number]) {
    require_same(ranks.group(), "step", {{"begin", step}});
  }
  const auto [loss, target_weight, counts_sum, squares_sum, added] =
      std::array{values[0], values[1], values[2], values[3], values[4]};
  require(added == ranks.num_loss_ranks(),
          "{} of {} ranks have losses: every rank calls backward(), of a pipeline those of its last stage", added,
          ranks.num_loss_ranks());
  require(added * squares_sum == counts_sum * counts_sum,
          "the ranks hold micro-batches of different numbers of targets, {} on average; they must be of one size, or shares of "
          "the batch that parallel::model_context(mesh, {{.batch_size = ...}}) knows",
          counts_sum / added);
  if (comparison != nullptr) comparison->check(std::span<const double>(values).subspan(first_compared), step, ranks.group());
  squares_->read(std::span<const double>(values).subspan(first_square, squares_->num_terms()));
  StepSummary summary{.loss_sum = loss, .target_weight = target_weight, .step = step, .store = owner_.store_.serial()};
  summary.gradient_scale = target_weight == 0 ? 0 : counts_sum / added / target_weight;
  for (std::size_t index = 0; index < used_.size(); ++index) summary.used.push_back(values[first_used + index] > 0);
  for (std::size_t tied = 0; tied < owner_.tied_.size(); ++tied) {
    const int parameter = owner_.tied_[tied].parameter;
    if (parameter >= 0) summary.used[static_cast<std::size_t>(parameter)] = values[tied_used + tied] > 0;
  }
  summary.requests = {.stop = values[first_request] > 0, .checkpoint = values[first_request + 1] > 0};
  return summary;
}

}  // namespace trireme::parallel
