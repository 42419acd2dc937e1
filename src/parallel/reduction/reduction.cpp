#include "parallel/reduction/reduction.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "parallel/replicas/non_finite.hpp"
#include "trireme/core/error.hpp"

namespace trireme::parallel {

Reduction::Reduction(const Replicas& replicas, Buckets& buckets, const Place& place)
    : replicas_(replicas),
      buckets_(buckets),
      place_(place),
      launched_(buckets.begin_step(place.number, place.micro_batches)),
      tied_(replicas, buckets),
      norm_(replicas),
      used_(replicas) {}

void Reduction::request(const StepRequests& requests) {
  requests_.stop = requests_.stop || requests.stop;
  requests_.checkpoint = requests_.checkpoint || requests.checkpoint;
}

void Reduction::listen(Tape& tape) {
  require(listened_ < place_.micro_batches, "a step of {} micro-batches was given one more", place_.micro_batches);
  replicas_.compare_evaluation();
  if (listened_ > 0) {
    used_.note_all_with_gradient();
    buckets_.micro_batches().begin_next();
  }
  if (++listened_ < place_.micro_batches) return;  // gradients become final in the last micro-batch
  buckets_.begin_last_micro_batch();
  launched_.expect(buckets_.list());
  tape.listen(replicas_.store, *this);
}

void Reduction::on_final(int parameter) {
  FlatStore& store = replicas_.store;
  buckets_.note_final(parameter);
  if (store.has_gradient(parameter)) {
    used_.note(parameter);
  } else {
    store.zero_gradient(parameter);
  }
  store.set_gradient_final(parameter);
  const ParameterInfo& info = store.parameter(parameter);
  buckets_.micro_batches().complete({info.offset, info.offset + info.numel});
  launched_.note_final(buckets_.bucket_of(parameter));
  launch_complete();
  advance();
}

void Reduction::launch_complete() {
  while (launched_.launch_next()) advance();
}

void Reduction::advance() {
  comm::progress();
  launched_.advance();
  tied_.advance(launched_, false);
  norm_.take_reduced(launched_, tied_, false);
}

// Launches the remaining buckets after the backward pass.
void Reduction::launch_rest() {
  const std::int64_t with_loss = losses_.num_micro_batches();
  const bool all_added = with_loss == place_.micro_batches;
  require(listened_ == place_.micro_batches && (all_added || (with_loss == 0 && !replicas_.summary.whole_model())),
          "finish() after {} of {} micro-batches: call backward() for each", with_loss, place_.micro_batches);
  launch_complete();
}

StepSummary Reduction::finish() {
  launch_rest();
  losses_.read();
  launched_.finish();
  tied_.advance(launched_, true);
  norm_.take_reduced(launched_, tied_, true);
  norm_.take_before_summary(launched_);
  StepSummary summary = reduce_summary(false);
  std::vector<Pending> buffers = replicas_.reduce_buffers();
  launched_.wait_for_all();
  for (Pending& run : buffers) launched_.wait_for(run);
  end();
  summary.exposed_communication_seconds = launched_.waited_seconds();
  norm_.take_after_summary();
  summary.gradient_norm = norm_.value() * summary.gradient_scale;
  if (!summary.is_finite()) {
    const Range all{0, replicas_.store.trainable_numel()};
    const auto shard = buckets_.reduction().shard();
    const std::span<const Range> reduced = shard ? std::span(shard->ranges()) : std::span(&all, 1);
    summary.non_finite = find_non_finite(replicas_.store, reduced, losses_.are_finite(), replicas_.summary);
  }
  return summary;
}

void Reduction::end() {
  finished_ = true;
  buckets_.end_step();
}

void Reduction::give_up() {
  if (finished_) return;
  buckets_.give_up_step();
  launched_.finish();
  tied_.advance(launched_, true);
}

StepSummary Reduction::finish_on_device() {
  FlatStore& store = replicas_.store;
  if (store.on_host() || replicas_.has_fixed_bits() || !replicas_.summary.whole_model()) return finish();
  launch_rest();
  const PlaneDevice& device = store.device();
  const device::Storage totals_there(device.memory(), sizeof(StepTotals));
  auto* totals = static_cast<StepTotals*>(totals_there.data());
  device.zero(totals, sizeof(StepTotals));
  losses_.add_to(totals, device);
  const auto add_squares = [&](const Range& range) {
    device.add_squares(store.gradient_plane(), store.dtype(), range, totals);
  };
  launched_.wait_for_all();
  if (replicas_.sharded) std::ranges::for_each(buckets_.reduction().shard()->ranges(), add_squares);
  Pending sum;
  if (replicas_.group.size() > 1) {
    sum = replicas_.group.all_reduce(std::span(&totals->loss_sum, 3), ReduceOp::sum, "step totals");
  }
  std::vector<Pending> buffers = replicas_.reduce_buffers();
  launched_.wait_for(sum);
  for (Pending& run : buffers) launched_.wait_for(run);
  if (!replicas_.sharded) add_squares({0, store.trainable_numel()});
  const auto numbers = std::make_shared<device::Storage>(device.memory(), sizeof(StepNumbers));
  auto* numbers_there = static_cast<StepNumbers*>(numbers->data());
  device.summarize(totals, static_cast<double>(losses_.targets()), numbers_there);
  StepSummary summary = reduce_summary(true);
  summary.exposed_communication_seconds = launched_.waited_seconds();
  summary.on_device = std::shared_ptr<const StepNumbers>(numbers, numbers_there);
  end();
  return summary;
}

// The one all-reduce of a step on the host. If the loss and norm stay on a GPU, it has only the other numbers.
StepSummary Reduction::reduce_summary(bool on_device) {
  const Group& ranks = replicas_.summary.group();
  StepSummary summary{.step = place_.number, .store = replicas_.store.serial()};
  SummaryFields fields;
  losses_.add_to(fields, replicas_.summary, summary);
  norm_.add_to(fields);
  used_.add_to(fields, summary);
  add_requests(fields, requests_, summary.requests);
  add_step_number(fields, place_.number, ranks);
  if (replicas_.comparison != nullptr && !on_device) {
    replicas_.comparison->add_part_to(fields, place_.steps_before, place_.number, ranks);
  }
  Pending sums = fields.reduce(ranks, replicas_.op(), "step summary");
  launched_.wait_for(sums);
  fields.read();
  return summary;
}

}  // namespace trireme::parallel
