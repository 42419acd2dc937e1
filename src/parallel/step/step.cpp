#include "trireme/parallel/step/step.hpp"

#include <fmt/format.h>

#include <exception>
#include <typeinfo>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::parallel {

Step::Step(std::int64_t number, std::shared_ptr<OpenStep> open) : number_(number), open_(std::move(open)) {}

Step::Step(Step&& other) noexcept
    : number_(other.number_), phase_(std::exchange(other.phase_, Phase::over)), open_(std::move(other.open_)) {}

Step::~Step() { give_up(); }

void Step::give_up() noexcept {
  if (std::exchange(phase_, Phase::over) != Phase::over) open_->give_up();
}

// Ends the step if an exception is thrown during its lifetime.
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

const std::shared_ptr<OpenStep>& Step::require_open() const {
  require(phase_ != Phase::over, "backward() of step {} after its end: begin another step", number_);
  require(phase_ == Phase::open,
          "backward() of step {} inside its own loss, or after a failed backward(): destroy the step, then begin it again",
          number_);
  require(open_->summary() == nullptr, "backward() of step {} after its finish()", number_);
  return open_;
}

void Step::require_own_loss() const {
  require(phase_ == Phase::in_micro_batches, "step {} was moved or given up inside its own loss", number_);
}

void Step::rethrow_from_loss(const Error& error) const {
  if (!error.fields().operation.empty() || error.code() != ErrorCode::invalid_argument || typeid(error) != typeid(Error)) throw;
  ErrorFields fields = error.fields();
  fields.operation = fmt::format("the loss of step {}", number_);
  throw Error(std::move(fields));
}

void Step::require_whole_model() const {
  const Axis& pipeline = open_->model().context().pipeline;
  require(
      pipeline == nullptr,
      "backward() of step {} got a loss, but {} ranks divide the layers of the model between them: give it the model and its "
      "batches",
      number_, pipeline == nullptr ? 1 : pipeline->size());
}

void Step::require_model(const Model& model, std::size_t num_stages) const {
  require(num_stages > 0, "backward() of step {} got a model of stages without layers: its constructor calls layers()",
          number_);
  require(&model == &require_open()->model(),
          "backward() of step {} got another model than the one that its DataParallel was made of", number_);
}

void Step::run_stages(StagePasses& passes) {
  const std::shared_ptr<OpenStep>& open = require_open();
  open->check(passes);
  phase_ = Phase::in_micro_batches;
  open->run_stages(passes);
  phase_ = Phase::open;
}

void Step::set_samples(std::int64_t all) {
  if (open_ != nullptr) open_->set_samples(all);
}

void Step::ask(const StepRequests& requests) {
  require(phase_ != Phase::over && open_->summary() == nullptr,
          "ask() comes before finish() and update(), which tell all ranks");
  open_->ask(requests);
}

const StepSummary& Step::finish() {
  if (open_ != nullptr && open_->summary() != nullptr) return *open_->summary();
  require(phase_ != Phase::over, "finish() of step {} after its end", number_);
  require(phase_ == Phase::open, "finish() of step {} inside its own loss, or after a backward() that has failed", number_);
  const EndOnError guard(*this);
  return open_->finish();
}

bool Step::update(optim::AnyOptimizer& optimizer, const optim::UpdateOptions& options) {
  require(phase_ != Phase::over, "update() of step {} after its end: a step has one", number_);
  open_->check(options);
  finish();
  const EndOnError guard(*this);
  const bool updated = open_->update(optimizer, options);
  phase_ = Phase::over;
  return updated;
}

}  // namespace trireme::parallel
