#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include "trireme/amp/grad_scaler.hpp"
#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/ops/update/step.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/parallel/pipeline/batch_samples.hpp"
#include "trireme/parallel/pipeline/stage_passes.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

class DataParallel;
class Pipeline;
class Reduction;
template <typename Net, typename Batch>
class ModelPasses;

// What a StepGraph tells a step that it may record, and learns of it.
struct StepRecording {
  const ops::RandomPosition* position = nullptr;  // where a GPU reads the step's place in the random numbers
  std::optional<std::int64_t> samples = {};       // of its inputs, where they say it
  std::optional<double> learning_rate = {};
  bool is_captured = false;                  // its work is noted, not done
  optim::AnyOptimizer* optimizer = nullptr;  // that updates; set by the first step
};

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
      require_whole_model();
      Tape tape(names_of(samples_of(batch, samples_of_micro_batch())));
      begin_micro_batches();
      listen(tape);
      auto value = loss_of(loss);
      value.nominal_targets = weighed(value.nominal_targets);
      add(value);
      scaler().scale(value).backward();
      end_micro_batches();
    }
  }

  // All micro-batches of this rank, of a model that is a list of layers (nn::Staged): `batches` holds as many as begin() was
  // told. Where the model is one stage they run one after the other, each as backward(batch, loss) with the model's
  // loss(forward(batch), batch). In a pipeline they run by ParallelOptions::schedule, and all ranks of the pipeline axis give
  // the same batches.
  template <typename Net, std::ranges::input_range Batches>
  void backward(const Net& model, const Batches& batches) {
    using Batch = typename Net::BatchType;
    require_model(model.model(), model.stages().size());
    if (model.stages().size() == 1) {
      for (const Batch& batch : batches) backward(batch, [&] { return nn::loss_from(model, model.forward(batch), batch); });
      return;
    }
    std::vector<Batch> all;
    for (const Batch& batch : batches) all.push_back(batch);
    ModelPasses<Net, Batch> passes(*this, model, std::move(all));
    run_stages(passes);
  }

  // How many samples the step has, of all ranks together, for batches that do not say how many are theirs.
  void set_samples(std::int64_t all) { samples_ = all; }

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
  friend class DataParallel;
  friend class Pipeline;
  template <typename Net, typename Batch>
  friend class ModelPasses;
  enum class Phase : std::uint8_t { open, in_micro_batches, over };

  // What Reduction keeps of a micro-batch's loss.
  struct MicroBatchLoss {
    std::function<StepTotals()> read;                   // of a GPU: the host waits
    std::function<void(StepTotals* on_device)> add_to;  // empty where the host knows the numbers
  };
  friend class Reduction;
  template <typename D, typename... Elements>
  friend class StepGraph;

  Step(DataParallel& owner, std::int64_t number, std::unique_ptr<Reduction> reduction, StepRecording* recording);

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
  void require_open() const;  // for backward()
  void run_stages(StagePasses& passes);
  std::optional<std::int64_t> samples_of_micro_batch() const;  // nothing: not known, or not the same on all ranks
  TapeOptions names_of(const BatchSamples& samples) const;
  const amp::GradScaler& scaler() const;
  bool has_fixed_bits() const;

  // What stands for the targets of this rank's samples where others have a sample more: gradients are divided by it, so that
  // their sum over the ranks is that of all samples alike.
  std::int64_t weighed(std::int64_t targets) const;

  // Between these two tapes are listened to and losses are added, each once for every micro-batch.
  void begin_micro_batches();
  void end_micro_batches() { phase_ = Phase::open; }
  void listen(Tape& tape);
  template <typename T, typename D>
  void add(const Loss<T, D>& loss) {
    const auto& added = Tape::current()->added_losses();
    const auto read = [sum = loss.sum.value(), target_weight = loss.target_weight, added] {
      return StepTotals{.loss_sum = static_cast<double>(sum.item()) + value_of(added), .target_weight = target_weight.item()};
    };
    if constexpr (Tensor<T, D>::on_host) {
      add({.read = [known = read()] { return known; }, .add_to = {}}, loss.nominal_targets);
    } else {
      const ops::StepSums<T, D> sums{.loss = Scalar<T, D>(loss.sum.value()), .target_weight = loss.target_weight};
      const auto add_to = [sums, added](StepTotals* totals) {
        ops::add_to_totals(sums, totals);
        for (const auto& one : added) one->add_to(totals);
      };
      add({.read = read, .add_to = add_to}, loss.nominal_targets);
    }
  }
  void add(MicroBatchLoss loss, std::int64_t nominal_targets);
  // Of a stage that is not the last one: what its layers have added to the loss of the last.
  void add_of_stage(const std::vector<std::shared_ptr<AddedLoss>>& added, bool on_host);
  static double value_of(const std::vector<std::shared_ptr<AddedLoss>>& added);
  class EndOnError;
  void give_up() noexcept;
  void record(const optim::AnyOptimizer& optimizer, bool updated) const;
  void set_learning_rate(optim::AnyOptimizer& optimizer, std::optional<double> rate);

  DataParallel* owner_;
  std::int64_t number_;
  Stopwatch since_begin_;
  std::uint64_t sent_before_;  // DataParallel::bytes_sent()
  StepRecording* recording_;   // null where no StepGraph records
  StreamCalls calls_;
  std::optional<std::int64_t> samples_;  // of all ranks
  Phase phase_ = Phase::open;
  std::unique_ptr<Reduction> reduction_;
  std::optional<StepSummary> summary_;  // once it is finished
};

// An nn::Staged and its batches, as a schedule runs them.
template <typename Net, typename Batch>
class ModelPasses final : public StagePasses {
 public:
  ModelPasses(Step& step, const Net& model, std::vector<Batch> batches)
      : step_(step), model_(model), batches_(std::move(batches)) {}

  int num_micro_batches() const override { return static_cast<int>(batches_.size()); }
  BatchSamples samples(int micro_batch) const override {
    return samples_of(batches_[static_cast<std::size_t>(micro_batch)], step_.samples_of_micro_batch());
  }

  void forward(int stage, int micro_batch, StagePass& pass) override {
    using Flow = typename Net::FlowType;
    const Batch& batch = batches_[static_cast<std::size_t>(micro_batch)];
    const Range& layers = model_.stages()[static_cast<std::size_t>(stage)];
    Flow x{};
    if (stage > 0) x = nn::unpack<Flow>(std::exchange(pass.input, {}), &pass.input_gradients);
    if (stage + 1 < static_cast<int>(model_.stages().size())) {
      pass.output = nn::pack(nn::settled(model_.run_layers(layers, x, batch)), &pass.give);
      const auto& added = Tape::current()->added_losses();
      if (added.empty()) return;
      step_.add_of_stage(added, Tensor<typename Net::M, typename Net::Device>::on_host);
      pass.begin_added = [scaler = &step_.scaler()](const Tape& tape, std::int64_t nominal_targets) {
        const Loss<typename Net::M, typename Net::Device> none{.sum = {}, .nominal_targets = nominal_targets};
        scaler->scale(none).begin_added(tape);
      };
      return;
    }
    const auto y = model_.last_layer(model_.run_layers({layers.begin, layers.end - 1}, x, batch), batch);
    auto loss = as_loss(nn::loss_from(model_, y, batch));
    loss.nominal_targets = step_.weighed(loss.nominal_targets);
    step_.add(loss);
    pass.nominal_targets = loss.nominal_targets;
    pass.backward = [scaled = step_.scaler().scale(loss)] { scaled.backward(); };
  }

 private:
  Step& step_;
  const Net& model_;
  std::vector<Batch> batches_;
};

}  // namespace parallel
}  // namespace trireme
