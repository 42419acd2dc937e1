#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>
#include <optional>
#include <ranges>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/data/loaders/batch_loader.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/parallel/step/step.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

class Run;
template <typename Loader>
class StepRange;

// What a RunStep needs of its run.
class StepOwner {
 public:
  // The step that is next; nothing: the run has no model.
  std::optional<parallel::Step> begin();
  // Asks the ranks what this one wants, once; finish() tells all of it.
  const StepSummary& finish(parallel::Step& step);
  // The same, then updates with the run's learning rate and clipping, or with the options given.
  bool update(parallel::Step& step, optim::AnyOptimizer& optimizer, const optim::UpdateOptions* options);
  std::int64_t number() const;

 private:
  template <typename Loader>
  friend class StepRange;
  explicit StepOwner(Run& run) : run_(&run) {}

  Run* run_;
};

// A step of a run's loop, with the batches of this rank: parallel::Step with the run's learning rate and clipping.
template <typename Loader>
class [[nodiscard]] RunStep {
 public:
  RunStep(StepOwner owner, const Loader& loader)
      : owner_(owner), loader_(&loader), number_(owner.number()), step_(owner_.begin()) {
    if (step_) step_->set_samples(data::samples_of_steps(loader, number_ + 1) - data::samples_of_steps(loader, number_));
  }
  RunStep(const RunStep&) = delete;
  RunStep& operator=(const RunStep&) = delete;

  std::int64_t number() const { return number_; }  // from 0 on, over all starts of the run

  // The micro-batches, each read when it is asked for.
  auto batches() const {
    return std::views::iota(std::int64_t{0}, loader_->num_micro_batches()) |
           std::views::transform(
               [loader = loader_, number = number_](std::int64_t micro_batch) { return loader->load(number, micro_batch); });
  }

  // See parallel::Step.
  template <typename Batch, std::invocable F>
  void backward(const Batch& batch, const F& loss) {
    step().backward(batch, loss);
  }
  template <typename Net, std::ranges::input_range Batches>
  void backward(Net& model, const Batches& batches) {
    step().backward(model, batches);
  }
  const StepSummary& finish() { return owner_.finish(step()); }

  // Ends the step: with Run::update_options, or with your own. False where it was skipped, see optim::NonFinitePolicy.
  bool update(optim::AnyOptimizer& optimizer) { return owner_.update(step(), optimizer, nullptr); }
  bool update(optim::AnyOptimizer& optimizer, const optim::UpdateOptions& options) {
    return owner_.update(step(), optimizer, &options);
  }

  bool has_model() const { return step_.has_value(); }

 private:
  parallel::Step& step() {
    require(step_.has_value(), "step {} of a run without a model: call run.add(model, optimizer) before run.steps()", number_);
    return *step_;
  }
  StepOwner owner_;
  const Loader* loader_;
  std::int64_t number_;
  std::optional<parallel::Step> step_;
};

}  // namespace trainer
}  // namespace trireme
