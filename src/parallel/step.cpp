#include "trireme/parallel/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <typeinfo>
#include <utility>

#include "parallel/pipeline.hpp"
#include "parallel/reduction.hpp"
#include "trireme/core/error.hpp"
#include "trireme/monitor/registry.hpp"
#include "trireme/parallel/data_parallel.hpp"

namespace trireme::parallel {

Step::Step(DataParallel& owner, std::int64_t number, std::unique_ptr<Reduction> reduction, StepRecording* recording)
    : owner_(&owner),
      number_(number),
      sent_before_(owner.bytes_sent()),
      recording_(recording),
      reduction_(std::move(reduction)) {}

Step::Step(Step&& other) noexcept
    : owner_(other.owner_),
      number_(other.number_),
      since_begin_(other.since_begin_),
      sent_before_(other.sent_before_),
      recording_(other.recording_),
      calls_(std::move(other.calls_)),
      samples_(other.samples_),
      phase_(std::exchange(other.phase_, Phase::over)),
      reduction_(std::move(other.reduction_)),
      summary_(std::exchange(other.summary_, std::nullopt)) {}

Step::~Step() { give_up(); }

void Step::give_up() noexcept {
  if (std::exchange(phase_, Phase::over) == Phase::over) return;
  try {
    if (reduction_ != nullptr) reduction_->give_up();
  } catch (const std::exception&) {  // of a job that has failed: the failure is being told already
  }
  try {
    reduction_ = nullptr;  // waits for what is under way
    owner_->give_up(recording_ == nullptr || !recording_->is_captured);
  } catch (const std::exception&) {  // of a GPU with an error, likewise
  }
}

// What throws while it lives ends the step.
class Step::EndOnError {
 public:
  explicit EndOnError(Step& step) : step_(step) {}
  ~EndOnError() {
    if (std::uncaught_exceptions() > before_) step_.give_up();
  }
  EndOnError(const EndOnError&) = delete;
  EndOnError& operator=(const EndOnError&) = delete;

 private:
  Step& step_;
  int before_ = std::uncaught_exceptions();
};

// A step inside the loss of another one whose random numbers have the same names goes on counting calls where that one is, so
// that a layer which both use does not draw the same numbers twice.
std::optional<std::int64_t> Step::samples_of_micro_batch() const {
  if (recording_ != nullptr && recording_->samples) return recording_->samples;
  if (!samples_ || reduction_ == nullptr) return std::nullopt;
  const BatchRows& rows = owner_->model_.context().rows;
  if (!rows.even() && rows.batch_size == *samples_ && reduction_->num_micro_batches() == 1) return rows.own.count();
  const std::int64_t ranks = owner_->group_.size() * (owner_->expert_ == nullptr ? 1 : owner_->expert_->size());
  const std::int64_t micro_batches = ranks * reduction_->num_micro_batches();
  return *samples_ % micro_batches == 0 ? std::optional(*samples_ / micro_batches) : std::nullopt;
}

TapeOptions Step::names_of(const BatchSamples& samples) const {
  TapeOptions names{.seed = owner_->model_.context().seed,
                    .step = static_cast<std::uint64_t>(number_) + (owner_->earlier_steps_ << 40),
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

std::int64_t Step::weighed(std::int64_t targets) const {
  const BatchRows& rows = owner_->model_.context().rows;
  if (rows.even()) return targets;
  const std::int64_t own = rows.own.count();
  require(
      targets % own == 0,
      "a loss of {} targets does not say what each of this rank's {} samples counts, and {} ranks cannot share a batch of {} "
      "equally: return a Loss with targets for each sample, as cross_entropy() gives it, or use a multiple of {}",
      targets, own, rows.ranks, rows.batch_size, rows.ranks);
  return targets / own * rows.largest_share();
}

const amp::GradScaler& Step::scaler() const { return owner_->scaler_; }

bool Step::has_fixed_bits() const { return owner_->has_fixed_bits(); }

void Step::require_open() const {
  require(phase_ != Phase::over, "backward() of step {} after its end: begin another step", number_);
  require(phase_ == Phase::open,
          "backward() of step {} inside its own loss, or after one that has failed: let the step go, then begin it again",
          number_);
  require(!summary_, "backward() of step {} after its finish()", number_);
}

void Step::begin_micro_batches() {
  require_open();
  phase_ = Phase::in_micro_batches;
}

void Step::rethrow_from_loss(const Error& error) const {
  if (!error.fields().operation.empty() || error.code() != ErrorCode::invalid_argument || typeid(error) != typeid(Error)) throw;
  ErrorFields fields = error.fields();
  fields.operation = fmt::format("the loss of step {}", number_);
  throw Error(std::move(fields));
}

void Step::require_whole_model() const {
  const Axis& pipeline = owner_->model_.context().pipeline;
  require(
      pipeline == nullptr,
      "backward() of step {} got a loss, but {} ranks divide the layers of the model between them: give it the model and its "
      "batches",
      number_, pipeline == nullptr ? 1 : pipeline->size());
}

void Step::require_model(const Model& model, std::size_t num_stages) const {
  require(num_stages > 0, "backward() of step {} got a model of stages without layers: its constructor calls layers()",
          number_);
  require(&model == &owner_->model_, "backward() of step {} got another model than the one that its DataParallel was made of",
          number_);
}

void Step::run_stages(StagePasses& passes) {
  require_open();
  require(!reduction_->has_listened(),
          "backward() of step {} takes all micro-batches of a model of stages at once: it is called once", number_);
  require(passes.num_micro_batches() == reduction_->num_micro_batches(),
          "step {} was begun with {} micro-batches and got {} batches", number_, reduction_->num_micro_batches(),
          passes.num_micro_batches());
  begin_micro_batches();
  owner_->pipeline_->run(*this, passes);
  end_micro_batches();
}

void Step::listen(Tape& tape) { reduction_->listen(tape); }

void Step::add_of_stage(const std::vector<std::shared_ptr<AddedLoss>>& added, bool on_host) {
  MicroBatchLoss loss{.read = [added] { return StepTotals{.loss_sum = value_of(added)}; }, .add_to = {}};
  if (!on_host) {
    loss.add_to = [added](StepTotals* totals) {
      for (const std::shared_ptr<AddedLoss>& one : added) one->add_to(totals);
    };
  }
  reduction_->add_of_stage(std::move(loss));
}

double Step::value_of(const std::vector<std::shared_ptr<AddedLoss>>& added) {
  double sum = 0;
  for (const std::shared_ptr<AddedLoss>& loss : added) sum += loss->value();
  return sum;
}

void Step::add(MicroBatchLoss loss, std::int64_t nominal_targets) {
  require(reduction_ != nullptr, "step {} was moved or given up inside its own loss", number_);
  reduction_->add(std::move(loss), nominal_targets);
}

void Step::ask(const StepRequests& requests) {
  require(phase_ != Phase::over && !summary_, "ask() comes before finish() and update(), which tell all ranks");
  reduction_->request(requests);
}

const StepSummary& Step::finish() {
  if (summary_) return *summary_;
  require(phase_ != Phase::over, "finish() of step {} after its end", number_);
  require(phase_ == Phase::open, "finish() of step {} inside its own loss, or after a backward() that has failed", number_);
  const EndOnError guard(*this);
  StepSummary summary = recording_ == nullptr ? reduction_->finish() : reduction_->finish_on_device();
  owner_->scaler_.unscale(summary);
  return summary_.emplace(std::move(summary));
}

// In later steps StepGraph does it, before what is recorded.
void Step::set_learning_rate(optim::AnyOptimizer& optimizer, std::optional<double> rate) {
  if (recording_ != nullptr) {
    require(recording_->optimizer == nullptr || recording_->optimizer == &optimizer,
            "the steps of a StepGraph are updated by one optimizer, and this is another one");
    rate = std::exchange(recording_->optimizer, &optimizer) == nullptr ? recording_->learning_rate : std::nullopt;
  }
  if (rate) optimizer.set_learning_rate(*rate);
}

bool Step::update(optim::AnyOptimizer& optimizer, const optim::UpdateOptions& options) {
  require(phase_ != Phase::over, "update() of step {} after its end: a step has one", number_);
  require(
      recording_ == nullptr || !options.learning_rate,
      "update() of a step of a StepGraph takes no learning rate: it would stay that of the recorded step; give it to run()");
  finish();
  const EndOnError guard(*this);
  optimizer.check(*summary_);
  if (recording_ == nullptr) owner_->compare(optimizer);
  set_learning_rate(optimizer, options.learning_rate);
  const bool updated = owner_->scaler_.step(optimizer, *summary_, options);
  owner_->scaler_.update();
  phase_ = Phase::over;
  reduction_ = nullptr;
  owner_->is_in_step_ = false;
  owner_->is_updated_ = updated;
  if (recording_ == nullptr) record(optimizer, updated);
  return updated;
}

void Step::record(const optim::AnyOptimizer& optimizer, bool updated) const {
  monitor::Registry& registry = monitor::Registry::current();
  const std::string& prefix = owner_->metrics_prefix_;
  const auto set = [&](const char* name, double value) { registry.gauge(prefix + name).set(value); };
  const auto count = [&](const char* name, double amount) { registry.counter(prefix + name).add(amount); };
  if (summary_->on_device == nullptr) {
    set("loss", summary_->loss());
    set("gradient_norm", summary_->gradient_norm);
    if (owner_->store_.compute_dtype() == DType::float16) set("loss_scale", owner_->scaler_.scale());
    if (updated) count("targets", std::max(summary_->target_weight, 0.0));
    count("skipped_steps", updated ? 0 : 1);
  }
  set("learning_rate", optimizer.learning_rate());
  set("step_seconds", since_begin_.seconds());
  set("exposed_communication_seconds", summary_->exposed_communication_seconds);
  count("sent_bytes", static_cast<double>(owner_->bytes_sent() - sent_before_));
}

}  // namespace trireme::parallel
