#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/autograd/model.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/data/sources/on_device.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/parallel/step/batch_samples.hpp"
#include "trireme/parallel/step/model_passes.hpp"
#include "trireme/parallel/step/open_step.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// A training step, made by DataParallel::begin: all micro-batches of all ranks between two updates.
//
//   parallel::Step step = replicas.begin(number);
//   step.backward(batch, [&] { return cross_entropy(net.forward(batch), batch.labels); });
//   step.update(optimizer, {.learning_rate = rate(number), .clip_norm = 1});
//
// Gradients are reduced while backward() runs. A step that ends without update(), for example by an exception, is undone:
// gradients are cleared and buffers restored. Only messages that a communication hook has already sent can't be undone. All
// ranks must give up a step at the same place. If only some ranks give it up, the job fails because the ranks' calls differ,
// or a later comparison finds that the replicas differ. In a pipeline a failed backward() ends the job, because messages
// between the stages are still under way.
//
// update() sets these metrics in monitor::Registry::current(), with the prefix ParallelOptions::metrics_prefix:
// - gauges: loss, gradient_norm, learning_rate, loss_scale (float16), step_seconds (from begin() on),
//   exposed_communication_seconds
// - counters: targets, sent_bytes (by this rank to other nodes), skipped_steps
// This takes no communication. Steps of a StepGraph set no metrics.
//
// Steps of different models can nest: the discriminator may take its step inside the loss of the generator. Each model's
// DataParallel needs a group of its own (Group::split). The inner step changes the inner model's parameters, so the outer loss
// must use the inner model only after the inner step. A gradient for a parameter that was updated after its use is an error.
// Frozen parameters are not checked for this.
class [[nodiscard]] Step {
 public:
  Step(std::int64_t number, std::shared_ptr<OpenStep> open);  // DataParallel::begin calls it
  Step(Step&&) noexcept;
  Step& operator=(Step&&) = delete;
  ~Step();

  // Runs one micro-batch: opens a tape, calls loss(), multiplies the result by the loss scale of float16 and runs the backward
  // pass. Random numbers depend on batch.first_sample, the number of the batch's first sample among the samples of all ranks,
  // and on the number of samples in the batch, see samples_of(). `batch` may also be a Range of samples; if the loss draws no
  // random numbers, the number of the first sample is enough. Micro-batches with different numbers of targets have a member
  // nominal_targets, one number for the whole step, which replaces that of their losses (see Loss). loss() returns a Loss, or a
  // Variable of one element, which counts as one target.
  //
  // If batch norm is synchronised, the model must be in training mode on all ranks or in evaluation mode on all ranks.
  // Otherwise all ranks throw an Error{rank_mismatch} that names the ranks.
  template <typename Batch, std::invocable F>
  void backward(const Batch& batch, const F& loss) {
    if constexpr (gives_loss<F>()) {
      const std::shared_ptr<OpenStep> open = require_open();  // keeps the step alive if the loss releases it
      require_whole_model();
      Tape tape(open->names_of(samples_of(batch, open->samples_of_micro_batch())));
      phase_ = Phase::in_micro_batches;
      open->listen(tape);
      auto value = loss_of(loss);
      require_own_loss();
      value.nominal_targets = nominal_targets_of(batch, value.nominal_targets, *open);
      open->add(micro_batch_loss(value), value.nominal_targets);
      open->scaler().scale(value).backward();
      phase_ = Phase::open;
    }
  }

  // Runs all micro-batches of this rank, as a loader gives them. Each micro-batch is copied to the model's device, see
  // data::brought_to. The model is a list of layers (nn::Staged), or has forward(batch) and loss(output, batch). A model of
  // one stage runs the micro-batches one after the other, as backward(batch, loss) does. A pipeline runs them by
  // ParallelOptions::schedule. Then `batches` must have as many micro-batches as begin() was given, the same number on all
  // ranks of the pipeline axis.
  template <typename Net, std::ranges::input_range Batches>
  void backward(Net& model, const Batches& batches) {
    using D = typename Net::Device;
    if constexpr (requires { model.stages(); }) {
      using Batch = typename Net::BatchType;
      require_model(model.model(), model.stages().size());
      if (model.stages().size() > 1) {
        std::vector<Batch> all;
        for (const auto& loaded : batches) all.push_back(data::brought_to<D>(loaded));
        ModelPasses<std::remove_const_t<Net>, Batch> passes(*require_open(), model, std::move(all));
        return run_stages(passes);
      }
      for (const auto& loaded : batches) {
        const Batch& batch = data::brought_to<D>(loaded);
        backward(batch, [&] { return nn::loss_from(model, model.forward(batch), batch); });
      }
    } else {
      require_model(model.model(), 1);
      for (const auto& loaded : batches) {
        const auto& batch = data::brought_to<D>(loaded);
        static_assert(
            requires { model.loss(model.forward(batch), batch); },
            "backward(model, batches) and fit() take the model's loss: give its class a function loss(output, batch), or give "
            "backward(batch, loss) one");
        backward(batch, [&] { return model.loss(model.forward(batch), batch); });
      }
    }
  }

  // Sets the number of samples in the step, on all ranks together, for batches that do not have their own number.
  void set_samples(std::int64_t all);

  // Makes requests of all ranks. A request of any rank appears in the summary of every rank.
  void ask(const StepRequests& requests);

  // Waits for the gradients. Afterwards the store holds the sum of the gradients over all ranks; if the step is sharded, it
  // holds this sum only in the part that this rank updates. The summary has the loss and norm of the whole model, without the
  // loss scale. finish() may be called again, also after update().
  const StepSummary& finish();

  // Calls finish() if that was not done, updates with the optimizer and ends the step, even if an exception is thrown. Returns
  // false if the step was skipped because the loss or a gradient is not finite, see NonFinitePolicy and GradScalerOptions.
  bool update(optim::AnyOptimizer& optimizer, const optim::UpdateOptions& options = {});

  std::int64_t number() const { return number_; }
  bool is_over() const { return phase_ == Phase::over; }

 private:
  enum class Phase : std::uint8_t { open, in_micro_batches, over };

  template <typename F>
  static constexpr bool gives_loss() {
    constexpr bool gives = requires(const F& loss) { as_loss(loss()); };
    static_assert(gives,
                  "backward(batch, loss) needs a function that returns a Loss, as cross_entropy() gives it, or a "
                  "Variable of one element: write [&] { return cross_entropy(...); }");
    return gives;
  }

  template <typename F>
  auto loss_of(const F& loss) const {
    try {
      return as_loss(loss());
    } catch (const Error& error) {
      rethrow_from_loss(error);
    }
  }
  [[noreturn]] void rethrow_from_loss(const Error& error) const;  // call it in a handler; names the loss in a refused argument
  void require_whole_model() const;                               // no pipeline divides the model
  void require_model(const Model& model, std::size_t num_stages) const;
  const std::shared_ptr<OpenStep>& require_open() const;  // for backward()
  void require_own_loss() const;                          // the loss function has not moved or given up this step
  void run_stages(StagePasses& passes);
  class EndOnError;
  void give_up() noexcept;

  std::int64_t number_;
  Phase phase_ = Phase::open;
  std::shared_ptr<OpenStep> open_;  // null after the step was moved
};

}  // namespace parallel
}  // namespace trireme
