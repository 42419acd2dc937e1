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

// One step of training, of DataParallel::begin: all micro-batches of all ranks between two updates.
//
//   parallel::Step step = replicas.begin(number);
//   step.backward(batch, [&] { return cross_entropy(net.forward(batch), batch.labels); });
//   step.update(optimizer, {.learning_rate = rate(number), .clip_norm = 1});
//
// Gradients travel while backward() runs. A step that ends without update(), by an exception too, leaves nothing behind but
// what a communication hook has sent: gradients are cleared, buffers have their values of before. All ranks give it up at the
// same place; where one does so alone the ranks no longer call alike, and the job fails, or their replicas are found to differ.
// In a pipeline a step whose backward() fails ends the job: stages have messages for each other under way.
//
// update() tells monitor::Registry::current(), with ParallelOptions::metrics_prefix before the names: loss, gradient_norm,
// learning_rate, loss_scale of float16, step_seconds (from begin() on), exposed_communication_seconds; and counts targets,
// sent_bytes (by this rank to other nodes) and skipped_steps. It asks nobody for them. Of a GPU's step it knows the loss and
// the norm where finish() was called.
//
// Steps of different models nest: inside the loss of a generator the discriminator may take its step. The DataParallel of each
// is made of a group of its own (Group::split). What the outer loss needs of the inner model it computes after the inner step,
// which changes the values that a backward pass would read. A gradient for a parameter that was updated since is an error; the
// values of frozen parameters are not compared.
class [[nodiscard]] Step {
 public:
  Step(std::int64_t number, std::shared_ptr<OpenStep> open);  // DataParallel::begin calls it
  Step(Step&&) noexcept;
  Step& operator=(Step&&) = delete;
  ~Step();

  // One micro-batch: opens its tape, calls loss(), multiplies it by the loss scale of float16 and runs the backward pass.
  // `batch` names its random numbers by batch.first_sample, the number of its first sample among those of all ranks, and by how
  // many samples it has, see samples_of(). A Range of samples will do, and where nothing is drawn the first number alone.
  // loss() gives a Loss, or a Variable of one element, which then counts as one target.
  //
  // Where batch norm is synchronised the model is in training on all ranks or in evaluation on all; otherwise all get an
  // Error{rank_mismatch} that names them.
  template <typename Batch, std::invocable F>
  void backward(const Batch& batch, const F& loss) {
    if constexpr (gives_loss<F>()) {
      const std::shared_ptr<OpenStep> open = require_open();  // lives on where the loss lets the step go
      require_whole_model();
      Tape tape(open->names_of(samples_of(batch, open->samples_of_micro_batch())));
      phase_ = Phase::in_micro_batches;
      open->listen(tape);
      auto value = loss_of(loss);
      require_own_loss();
      value.nominal_targets = open->weighed(value.nominal_targets);
      open->add(micro_batch_loss(value), value.nominal_targets);
      open->scaler().scale(value).backward();
      phase_ = Phase::open;
    }
  }

  // All micro-batches of this rank, as loaders give them: each is brought to the model's device, see data::brought_to. The
  // model is a list of layers (nn::Staged), or has forward(batch) and loss(output, batch). Where it is one stage the
  // micro-batches run one after the other, each as backward(batch, loss). In a pipeline `batches` holds as many as begin() was
  // told; they run by ParallelOptions::schedule, and all ranks of the pipeline axis give the same ones.
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

  // How many samples the step has, of all ranks together, for batches that do not say how many are theirs.
  void set_samples(std::int64_t all);

  // Asks all ranks: what any of them has asked for is in the summary of all.
  void ask(const StepRequests& requests);

  // Waits for the gradients. Afterwards the store holds their sum over all ranks (where the step is sharded: only in the part
  // that this rank updates), and the summary what it means: loss and norm are those of the whole model, without the loss scale.
  // May be called again, also after update().
  const StepSummary& finish();

  // finish(), unless it was called; then the optimizer's update, which ends the step. False where it was skipped because the
  // loss or a gradient is not finite, see NonFinitePolicy and GradScalerOptions. What throws here ends the step too.
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
  [[noreturn]] void rethrow_from_loss(const Error& error) const;  // in a handler of it: an argument that is refused
  void require_whole_model() const;                               // no other rank has stages of it
  void require_model(const Model& model, std::size_t num_stages) const;
  const std::shared_ptr<OpenStep>& require_open() const;  // for backward()
  void require_own_loss() const;                          // that it has not let the step go
  void run_stages(StagePasses& passes);
  class EndOnError;
  void give_up() noexcept;

  std::int64_t number_;
  Phase phase_ = Phase::open;
  std::shared_ptr<OpenStep> open_;  // null once the step is moved
};

}  // namespace parallel
}  // namespace trireme
