#include "parallel/data_parallel_step.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/error.hpp"
#include "trireme/monitor/registry.hpp"

namespace trireme::parallel {

DataParallelStep::DataParallelStep(DataParallel::Parts& parts, std::int64_t number, int micro_batches, StepRecording* recording)
    : parts_(parts), number_(number), recording_(recording) {
  reduction_.emplace(
      parts.replicas, parts.buckets,
      Reduction::Place{.number = number, .steps_before = parts.state.finished_steps, .micro_batches = micro_batches});
  parts.state.begin(number);
  since_begin_.restart();
  sent_before_ = parts.bytes_sent();
}

BatchRows DataParallelStep::rows() const {
  BatchRows rows = model().context().rows;
  if (!rows.even() && samples_ && *samples_ >= rows.ranks) {  // a step may have another size than the context
    rows.batch_size = *samples_;
    rows.own = share_of(*samples_, parts_.replicas.place_in_batch, rows.ranks);
  }
  return rows;
}

std::optional<std::int64_t> DataParallelStep::samples_of_micro_batch() const {
  if (recording_ != nullptr && recording_->samples) return recording_->samples;
  if (!samples_ || !reduction_) return std::nullopt;
  const Replicas& replicas = parts_.replicas;
  const BatchRows rows = this->rows();
  if (!rows.even() && reduction_->num_micro_batches() == 1) return rows.own.count();
  const std::int64_t ranks = replicas.group.size() * (replicas.expert == nullptr ? 1 : replicas.expert->size());
  const std::int64_t micro_batches = ranks * reduction_->num_micro_batches();
  return *samples_ % micro_batches == 0 ? std::optional(*samples_ / micro_batches) : std::nullopt;
}

// If the step lies inside the loss of another step with the same names of random numbers, it continues that step's counts of
// random calls: a layer that both use then does not draw the same numbers twice.
TapeOptions DataParallelStep::names_of(const BatchSamples& samples) const {
  TapeOptions names{.seed = model().context().seed,
                    .step = static_cast<std::uint64_t>(number_) + (parts_.state.earlier_steps << 40),
                    .first_sample = samples.first,
                    .samples = samples.count,
                    .on_device = recording_ == nullptr ? nullptr : recording_->position,
                    .calls = calls_};
  const Tape* outer = Tape::current();
  const auto& around = outer == nullptr ? std::nullopt : outer->options();
  if (around && around->seed == names.seed && around->step == names.step && around->first_sample == samples.first) {
    names.calls = around->calls;
  }
  return names;
}

std::int64_t DataParallelStep::weighed(std::int64_t targets) const {
  const BatchRows rows = this->rows();
  if (rows.even()) return targets;
  const std::int64_t own = rows.own.count();
  require(
      targets % own == 0,
      "a loss of {} targets does not show how much each of this rank's {} samples counts, and {} ranks cannot share a batch of "
      "{} equally: return a Loss with targets for each sample, as cross_entropy() does, or use a multiple of {}",
      targets, own, rows.ranks, rows.batch_size, rows.ranks);
  return targets / own * rows.largest_share();
}

void DataParallelStep::add(MicroBatchLoss loss, std::int64_t nominal_targets) {
  reduction_->losses().add(std::move(loss), nominal_targets);
}

void DataParallelStep::add_of_stage(MicroBatchLoss loss) { reduction_->losses().add_of_stage(std::move(loss)); }

void DataParallelStep::check(const StagePasses& passes) const {
  require(!reduction_->has_listened(),
          "backward() of step {} takes all micro-batches of a model of stages at once: it is called once", number_);
  require(passes.num_micro_batches() == reduction_->num_micro_batches(),
          "step {} was begun with {} micro-batches and got {} batches", number_, reduction_->num_micro_batches(),
          passes.num_micro_batches());
}

const StepSummary& DataParallelStep::finish() {
  StepSummary summary = recording_ == nullptr ? reduction_->finish() : reduction_->finish_on_device();
  ++parts_.state.finished_steps;
  parts_.state.scaler.unscale(summary);
  return summary_.emplace(std::move(summary));
}

void DataParallelStep::check(const optim::UpdateOptions& options) const {
  require(
      recording_ == nullptr || !options.learning_rate,
      "update() of a step of a StepGraph takes no learning rate: it would stay that of the recorded step; give it to run()");
}

// Compares the optimizer's settings between ranks at its first update.
void DataParallelStep::compare(const optim::AnyOptimizer& optimizer) {
  std::vector<std::uint64_t>& compared = parts_.state.compared_optimizers;
  if (std::ranges::count(compared, optimizer.serial()) > 0) return;
  require_same(parts_.replicas.summary.group(), "optimizer setting", optimizer.settings());
  compared.push_back(optimizer.serial());
}

// For the first step of a StepGraph; before later ones the StepGraph sets the rate itself, outside the recorded step.
void DataParallelStep::set_learning_rate(optim::AnyOptimizer& optimizer, std::optional<double> rate) {
  if (recording_ != nullptr) {
    require(recording_->optimizer == nullptr || recording_->optimizer == &optimizer,
            "the steps of a StepGraph are updated by one optimizer, and this is another one");
    rate = std::exchange(recording_->optimizer, &optimizer) == nullptr ? recording_->learning_rate : std::nullopt;
  }
  if (rate) optimizer.set_learning_rate(*rate);
}

bool DataParallelStep::update(optim::AnyOptimizer& optimizer, const optim::UpdateOptions& options) {
  StepState& state = parts_.state;
  optimizer.check(*summary_);
  if (recording_ == nullptr) compare(optimizer);
  set_learning_rate(optimizer, options.learning_rate);
  const bool updated = state.scaler.step(optimizer, *summary_, options);
  state.scaler.update();
  reduction_.reset();
  state.is_open = false;
  state.is_updated = updated;
  if (recording_ == nullptr) tell_metrics(optimizer, updated);
  return updated;
}

void DataParallelStep::tell_metrics(const optim::AnyOptimizer& optimizer, bool updated) const {
  monitor::Registry& registry = monitor::Registry::current();
  const std::string& prefix = parts_.metrics_prefix;
  const auto set = [&](const char* name, double value) { registry.gauge(prefix + name).set(value); };
  const auto count = [&](const char* name, double amount) { registry.counter(prefix + name).add(amount); };
  if (summary_->on_device == nullptr) {
    set("loss", summary_->loss());
    set("gradient_norm", summary_->gradient_norm);
    if (parts_.replicas.store.compute_dtype() == DType::float16) set("loss_scale", parts_.state.scaler.scale());
    if (updated) count("targets", std::max(summary_->target_weight, 0.0));
    count("skipped_steps", updated ? 0 : 1);
  }
  set("learning_rate", optimizer.learning_rate());
  set("step_seconds", since_begin_.seconds());
  set("exposed_communication_seconds", summary_->exposed_communication_seconds);
  count("sent_bytes", static_cast<double>(parts_.bytes_sent() - sent_before_));
}

void DataParallelStep::give_up() noexcept {
  if (!reduction_) return;
  try {
    reduction_->give_up();
  } catch (const std::exception&) {  // the job has failed, and another error reports it
  }
  try {
    reduction_.reset();  // waits for what is under way
    parts_.state.scaler.give_up();
    FlatStore& store = parts_.replicas.store;
    if (recording_ == nullptr || !recording_->is_captured) store.buffers().restore();
    store.clear_gradients();
    parts_.state.is_open = false;
  } catch (const std::exception&) {  // the GPU has failed, and another error reports it
  }
}

}  // namespace trireme::parallel
