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
#include "trireme/core/stopwatch.hpp"
#include "trireme/data/loaders/batch_loader.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/parallel/step/step.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

class Run;
template <typename Loader>
class StepRange;

// The functions of a Run that a RunStep calls.
class StepOwner {
 public:
  // Begins the next step; nothing if the run trains no model.
  std::optional<parallel::Step> begin();
  // Adds this rank's requests to the step (only once) and calls step.finish().
  const StepSummary& finish(parallel::Step& step);
  // Calls finish(), then updates with the given options; null: with the run's learning rate and clipping.
  bool update(parallel::Step& step, optim::AnyOptimizer& optimizer, const optim::UpdateOptions* options);
  std::int64_t number() const;
  void add_waiting_for_data(double seconds) const;

 private:
  template <typename Loader>
  friend class StepRange;
  explicit StepOwner(Run& run) : run_(&run) {}

  Run* run_;
};

// A step of a run's loop: a parallel::Step with the batches of this rank and the run's learning rate and clipping.
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

  // The micro-batches of this rank; each is loaded when the iteration reaches it.
  auto batches() const {
    return std::views::iota(std::int64_t{0}, loader_->num_micro_batches()) |
           std::views::transform([loader = loader_, number = number_, owner = owner_](std::int64_t micro_batch) {
             const WaitForData wait{.owner = owner, .since = {}};
             return loader->load(number, micro_batch);
           });
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

  // Updates and ends the step, with Run::update_options() or with your own options. Returns false if the step was skipped, see
  // optim::NonFinitePolicy.
  bool update(optim::AnyOptimizer& optimizer) { return owner_.update(step(), optimizer, nullptr); }
  bool update(optim::AnyOptimizer& optimizer, const optim::UpdateOptions& options) {
    return owner_.update(step(), optimizer, &options);
  }

  bool has_model() const { return step_.has_value(); }

 private:
  // Adds its own lifetime to the time that the step waits for data.
  struct WaitForData {
    const StepOwner& owner;
    Stopwatch since;
    ~WaitForData() { owner.add_waiting_for_data(since.seconds()); }
  };

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
