#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/mean.hpp"
#include "trireme/core/state.hpp"
#include "trireme/core/units.hpp"
#include "trireme/data/loaders/batch_loader.hpp"
#include "trireme/data/loaders/evaluation_batches.hpp"
#include "trireme/data/sources/batch_options.hpp"
#include "trireme/files/location.hpp"
#include "trireme/mesh/process_mesh.hpp"
#include "trireme/monitor/sink.hpp"
#include "trireme/nn/base/module.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/trainer/evaluation.hpp"
#include "trireme/trainer/options.hpp"
#include "trireme/trainer/run_step.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

template <typename Loader>
class StepRange;

// What a callback sees of a step: the same on all ranks.
struct StepReport {
  std::int64_t step = 0;                   // its number, from 0 on
  std::optional<std::int64_t> steps = {};  // of the whole run, where that is known
  double loss = 0;                         // the mean over the counted targets of all ranks; 0 in a run without a model
  double gradient_norm = 0;                // before clipping
  double target_weight = 0;                // the counted targets
  bool is_finite = true;                   // otherwise the step was skipped
};

// What a loop asks of its loader, see data::BatchLoader.
struct LoaderShape {
  std::int64_t batch_size = 0;         // of all ranks together
  std::int64_t num_micro_batches = 0;  // of a step, on this rank
  std::int64_t samples_per_epoch = 0;
  std::int64_t tokens_per_sample = 0;                                // 0: it reads no tokens
  std::function<std::int64_t(std::int64_t steps)> samples_of_steps;  // of all ranks together
  std::function<std::int64_t(std::int64_t samples)> steps_of_samples;
  std::function<std::string()> content = {};  // what it reads, in words; empty: it does not say
};

// A training run: its ranks and where they lie on the mesh, its place in the data, checkpoints, metrics and signals.
//
//   void train(trainer::Run& run) {
//     Net net(run.context());
//     optim::AdamW optimizer(net);
//     run.add(net, optimizer);
//     const data::Loader rows(training, run.batch());
//     for (auto& step : run.steps(rows)) {
//       for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
//       step.update(optimizer);
//       if (run.due(Epochs{1})) run.report({{"test_loss", run.evaluate(net, test)}});
//     }
//   }
//
// All ranks call its functions in the same order. Who leaves the loop by `break` leaves out its last checkpoint: stop() does
// not. It takes signals and standard output only where Options::process says so; launch() does.
class Run {
 public:
  // Collective. Looks for the checkpoint to go on from, and opens the file of metrics.
  explicit Run(const Group& world, const Options& options = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const Group& world() const;
  const ProcessMesh& mesh() const;
  const Options& options() const;

  // What a model is made with. `layer_costs`: see parallel::ModelContextOptions. Collective.
  ModelContext context(std::vector<double> layer_costs = {}) const;

  // What a loader is made with: this rank's share of the batches, and the seed.
  data::BatchOptions batch() const;

  // The model and its optimizer belong to the run: its values are kept equal on the ranks, and both are saved in its
  // checkpoints. A model without values is initialised; one that has loaded some keeps them. Of several models each has a
  // prefix, for names in checkpoints and metrics: "generator.". The first one is that of run.steps(). Collective.
  template <typename P, typename D>
  void add(nn::Module<P, D>& model, optim::AnyOptimizer& optimizer, const std::string& prefix = {}) {
    if (!model.store().has_values()) model.initialize();
    add_model(model, &optimizer, prefix);
  }

  // A model that is evaluated, or generates: of a checkpoint it takes its own values alone.
  template <typename P, typename D>
  void add(nn::Module<P, D>& model, const std::string& prefix = {}) {
    if (!model.store().has_values()) model.initialize();
    add_model(model, nullptr, prefix);
  }

  // More for the checkpoints: add_to(state) is called whenever one is saved or loaded.
  void keep(std::function<void(State&)> add_to);

  // A setting of the program's own, for the checkpoints. `absent`: what a checkpoint without it was made with, as one that is
  // older than the setting; none: that differs from all values. Collective: all ranks have the same value.
  void describe(const std::string& name, const std::string& value, Differs differs = Differs::refused,
                const std::optional<std::string>& absent = {});

  // The data that the run reads, where its loader does not know all of them: a file or folder, whose content is kept in the
  // checkpoints as "data_content", the next ones' as "data_content_2" and so on. A run goes on with the same alone, or with
  // Options::allow_other_data. Without a call it is the content of the loader of steps(), where that has content(): those of
  // the library do, of tables, images and tokens. The number of samples_per_epoch() is kept of every loader. Collective.
  void describe_data(const Location& path);

  // Loads the checkpoint to go on from, where there is one. steps() and evaluate() do so themselves. Collective.
  void load();

  // The loop. The loader, see data::BatchLoader, must outlive it.
  template <typename Loader>
  StepRange<Loader> steps(const Loader& loader) {
    data::require_batch_loader<Loader>();
    return {*this, loader};
  }
  template <typename Loader>
  void steps(const Loader&& loader) = delete;  // would be gone before the first step

  // The same step of another model, which nests in the loss of the first, or follows it with micro-batches of its own.
  parallel::Step begin(Model& model, int micro_batches = 1);
  // The learning rate of this step, clipping and what to do where numbers are not finite.
  optim::UpdateOptions update_options(const optim::AnyOptimizer& optimizer) const;

  std::int64_t done() const;  // steps that are done, over all starts; in the loop, with the one just updated
  std::optional<std::int64_t> total_steps() const;  // once steps() was called; nothing with Seconds

  // Whether that much has passed since it was true last, counted from the run's first step: after every fifth step, at the end
  // of each epoch. And after the last step of the run. In the loop, after step.update().
  bool due(const Place& every) const;

  // f(output, batch), or f(batch), over all samples and ranks, without a tape, in evaluation mode; neither the place in the
  // data nor random numbers change. f gives a Mean, a Loss, or an array of these:
  //
  //   run.evaluate(net, test, [](const auto& y, const auto& batch) { return accuracy(y, batch.labels); })
  //
  // `samples`: see data::evaluation_batches. Collective.
  template <typename Net, typename Samples, typename F>
  auto evaluate(const Net& model, const Samples& samples, const F& f) {
    return evaluate_batches(model, samples, [&](const auto& batch) {
      if constexpr (std::invocable<const F&, decltype(batch)>) {
        return f(batch);
      } else {
        static_assert(
            requires { f(model.forward(batch), batch); },
            "evaluate() takes a function of (output, batch), where output is what the model's forward(batch) gives, or of "
            "(batch)");
        return f(model.forward(batch), batch);
      }
    });
  }
  // The mean loss of a model that has loss(output, batch).
  template <typename Net, typename Samples>
  Mean evaluate(const Net& model, const Samples& samples) {
    return evaluate_batches(model, samples, [&](const auto& batch) {
      if constexpr (requires { model.stages(); }) {
        return nn::loss_of(model, batch);
      } else {
        static_assert(
            requires { model.loss(model.forward(batch), batch); },
            "evaluate(model, samples) takes the model's loss: give its class a function loss(output, batch), or give "
            "evaluate() a function of the output and the batch as its third argument");
        return model.loss(model.forward(batch), batch);
      }
    });
  }
  // What the replicas have found, added up: for evaluations of your own. Collective. Of samples of evaluation_batch() each
  // counts once for each rank of the expert axis.
  void all_reduce(std::span<Mean> means) const;
  // What data::evaluation_batches() takes for these: as batch(), but the ranks of an expert axis, which compute together, get
  // the same samples.
  data::BatchOptions evaluation_batch() const;

  // Results for the metrics of this step, and a line that tells them.
  void report(std::initializer_list<std::pair<std::string_view, double>> values);
  void note(std::string_view line);  // tells something, once, however many ranks call it

  // More places for metrics; rank 0 keeps it, the other ranks let it go.
  void add_sink(std::unique_ptr<monitor::Sink> sink);

  // Called after each step, on all ranks. It asks all ranks by the second argument, which they do after the next step. A
  // collective in it is an Error; what it throws ends the job.
  void after_step(std::function<void(const StepReport&, StepRequests&)> callback);

  // Ends the loop after this step, with a checkpoint. All ranks call it alike; a rank that can't know what the others do asks:
  // ask({.stop = true}) stops all of them after the next step.
  void stop();
  void ask(const StepRequests& requests);
  bool stopped() const;  // by stop(), ask() or a signal

  const std::map<std::string, std::string>& settings() const;  // what a checkpoint of this run says of it

 private:
  friend class StepOwner;
  template <typename Loader>
  friend class StepRange;
  class Impl;

  void add_model(Model& model, optim::AnyOptimizer* optimizer, const std::string& prefix);
  void begin_loop(const LoaderShape& shape);
  bool begin_step();  // false: there is no next one
  void require_updated() const;
  void end_step(const StepSummary* summary);  // null: the run has no model
  void end_loop();
  void begin_evaluation();

  template <typename Net, typename Samples, typename F>
  auto evaluate_batches(const Net& model, const Samples& samples, const F& f) {
    static_assert(
        data::ItemDataset<Samples> || data::CollatingDataset<Samples> || std::same_as<Samples, data::ImageDataset>,
        "evaluate() reads a dataset: a type with size() and at(index), or with size() and collate(indices, first_sample)");
    begin_evaluation();
    const Evaluation in_evaluation(model.model());
    auto result = means_of<typename Net::Device>(data::borrowed_evaluation_batches(samples, evaluation_batch()), f);
    all_reduce(result.all());
    for (Mean& mean : result.all()) {  // the ranks of an expert axis have counted the same samples
      mean.sum /= mesh().expert().size();
      mean.weight /= mesh().expert().size();
    }
    return result.value();
  }

  std::unique_ptr<Impl> impl_;
};

// The steps that are left of a run.
template <typename Loader>
class StepRange {
 public:
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = RunStep<Loader>;

    explicit Iterator(StepRange& range) : range_(&range) { range_->next(); }
    RunStep<Loader>& operator*() const { return *range_->step_; }
    Iterator& operator++() {
      range_->end_step();
      range_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.is_at_end(); }

   private:
    bool is_at_end() const { return !range_->step_.has_value(); }

    StepRange* range_;
  };

  StepRange(Run& run, const Loader& loader) : run_(run), loader_(loader) {}
  StepRange(const StepRange&) = delete;
  StepRange& operator=(const StepRange&) = delete;

  Iterator begin() {
    run_.begin_loop(shape_of(loader_));
    return Iterator(*this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  static LoaderShape shape_of(const Loader& loader) {
    LoaderShape shape{.batch_size = loader.batch_size(),
                      .num_micro_batches = loader.num_micro_batches(),
                      .samples_per_epoch = loader.samples_per_epoch(),
                      .samples_of_steps = [&loader](std::int64_t steps) { return data::samples_of_steps(loader, steps); },
                      .steps_of_samples = [&loader](std::int64_t samples) { return data::steps_of_samples(loader, samples); }};
    if constexpr (requires { loader.content(); }) shape.content = [&loader] { return std::string(loader.content()); };
    if constexpr (requires { loader.tokens_per_sample(); }) shape.tokens_per_sample = loader.tokens_per_sample();
    return shape;
  }

  void next() {
    if (run_.begin_step()) {
      step_.emplace(StepOwner(run_), loader_);
    } else {
      run_.end_loop();
    }
  }
  void end_step() {
    run_.require_updated();
    run_.end_step(step_->has_model() ? &step_->finish() : nullptr);
    step_.reset();
  }

  Run& run_;
  const Loader& loader_;
  std::optional<RunStep<Loader>> step_;
};

}  // namespace trainer
}  // namespace trireme
