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
#include "trireme/data/loaders/loader_report.hpp"
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

// A finished step, as callbacks receive it. All ranks receive the same values.
struct StepReport {
  std::int64_t step = 0;                   // its number, from 0 on
  std::optional<std::int64_t> steps = {};  // of the whole run, if known
  double loss = 0;                         // the mean over the counted targets of all ranks; 0 in a run without a model
  double gradient_norm = 0;                // before clipping
  double target_weight = 0;                // the sum of the weights of the counted targets
  bool is_finite = true;                   // otherwise the step was skipped
};

// The properties of a loader that the training loop uses, see data::BatchLoader.
struct LoaderShape {
  std::int64_t batch_size = 0;         // of all ranks together
  std::int64_t num_micro_batches = 0;  // of a step, on this rank
  std::int64_t samples_per_epoch = 0;
  std::int64_t tokens_per_sample = 0;                                // 0: the loader reads no tokens
  std::function<std::int64_t(std::int64_t steps)> samples_of_steps;  // of all ranks together
  std::function<std::int64_t(std::int64_t samples)> steps_of_samples;
  std::function<std::string()> content = {};        // describes the loader's data; empty: the loader can't
  std::function<data::LoaderReport()> report = {};  // empty: the loader reports nothing
  std::function<bool(std::int64_t step)> has = {};  // whether this rank's data hold the step; empty: they never end
};

// A training run. It holds the ranks and their places on the mesh, the place in the data, checkpoints, metrics and signals.
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
// All ranks call the functions of a run in the same order. A loop that `break` leaves saves no last checkpoint; a loop that
// stop() ends saves a last checkpoint. A run handles signals and writes to standard output only if Options::process says so;
// launch() sets these options.
class Run {
 public:
  // Collective. Looks for the checkpoint to resume from, and opens the file of metrics.
  explicit Run(const Group& world, const Options& options = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const Group& world() const;
  const ProcessMesh& mesh() const;
  const Options& options() const;

  // The context to construct models with. `layer_costs`: see parallel::ModelContextOptions. Collective.
  ModelContext context(std::vector<double> layer_costs = {}) const;

  // The options to construct loaders with: this rank's share of the batches, and the seed.
  data::BatchOptions batch() const;

  // Trains the model in this run: keeps the model's values equal on all ranks and saves the model and its optimizer in
  // checkpoints. A model without values is initialised; loaded values stay. With several models, each model needs a prefix for
  // its names in checkpoints and metrics, such as "generator."; run.steps() yields the steps of the first model. Collective.
  template <typename P, typename D>
  void add(nn::Module<P, D>& model, optim::AnyOptimizer& optimizer, const std::string& prefix = {}) {
    if (!model.store().has_values()) model.initialize();
    add_model(model, &optimizer, prefix);
  }

  // Adds a model that is only evaluated or only generates. From a checkpoint, only the model's values are loaded.
  template <typename P, typename D>
  void add(nn::Module<P, D>& model, const std::string& prefix = {}) {
    if (!model.store().has_values()) model.initialize();
    add_model(model, nullptr, prefix);
  }

  // Keeps further state in checkpoints: add_to(state) is called whenever a checkpoint is saved or loaded.
  void keep(std::function<void(State&)> add_to);

  // Keeps a setting of the program in checkpoints. `absent` is the value to assume if a checkpoint lacks the setting, for
  // example because the program did not have the setting yet. Without `absent`, a checkpoint without the setting counts as a
  // checkpoint with another value. The value must be the same on all ranks. Collective.
  void describe(const std::string& name, const std::string& value, Differs differs = Differs::refused,
                const std::optional<std::string>& absent = {});

  // Names a file or folder that the run reads. This is needed if the loader does not know all files of its data. Checkpoints
  // keep a digest of the content: "data_content" for the first call, "data_content_2" for the next, and so on. A run resumes
  // only with the same content, or with Options::allow_other_data. Without a call, "data_content" is the content() of the
  // loader given to steps(); the library's loaders of tables, images and tokens have this function. Checkpoints also keep the
  // samples_per_epoch() of every loader. Collective.
  void describe_data(const Location& path);

  // Loads the checkpoint to resume from, if there is one. steps() and evaluate() call load(). Collective.
  void load();

  // The steps of the training loop. The loader, see data::BatchLoader, must outlive the loop.
  template <typename Loader>
  StepRange<Loader> steps(const Loader& loader) {
    data::require_batch_loader<Loader>();
    return {*this, loader};
  }
  template <typename Loader>
  void steps(const Loader&& loader) = delete;  // the loader would be destroyed before the first step

  // Begins the current step of another model of the run. Call it inside the loss of the first model, or after the first model's
  // step.
  parallel::Step begin(Model& model, int micro_batches = 1);
  // The learning rate of this step, the clipping, and the policy for a loss or gradient that is not finite.
  optim::UpdateOptions update_options(const optim::AnyOptimizer& optimizer) const;

  std::int64_t done() const;  // finished steps over all starts; after step.update(), with the current step
  std::optional<std::int64_t> total_steps() const;  // known after steps() was called; nothing if Options::until is Seconds

  // True at the end of each period of `every` (steps, samples, tokens or epochs), and after the run's last step. Periods count
  // from the run's first step. due(Steps{5}) is true after every fifth step, due(Epochs{1}) at the end of each epoch. Call it
  // in the loop, after step.update().
  bool due(const Place& every) const;

  // Calls f(output, batch), or f(batch), on all samples and averages the results. The ranks divide the samples among
  // themselves. Runs without a tape and in evaluation mode; the run's place in the data and its random numbers don't change. f
  // returns a Mean, a Loss, or a std::array of Means:
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
  // Returns the mean loss of a model that has loss(output, batch).
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
  // Adds up the means over the ranks of mesh().batch(), for evaluations of your own. A sample of evaluation_batch() then counts
  // once for each rank of the expert axis. Collective.
  void all_reduce(std::span<Mean> means) const;
  // The options for data::evaluation_batches(). They are the options of batch(), except that the ranks of an expert axis,
  // which compute together, get the same samples.
  data::BatchOptions evaluation_batch() const;

  // Adds values to the metrics of this step and prints them in a line.
  void report(std::initializer_list<std::pair<std::string_view, double>> values);
  void note(std::string_view line);  // prints a line, on rank 0 only

  // Adds a sink for metrics. Only rank 0 keeps it; the other ranks destroy it.
  void add_sink(std::unique_ptr<monitor::Sink> sink);

  // Calls the callback after each step, on all ranks. The callback can put requests into its second argument; all ranks carry
  // them out after the next step. A collective in the callback throws Error. An exception that the callback throws ends the
  // job.
  void after_step(std::function<void(const StepReport&, StepRequests&)> callback);

  // Ends the loop after this step and saves a checkpoint. All ranks call it in the same step. To stop from a single rank, call
  // ask({.stop = true}) on that rank. This stops all ranks after the next step.
  void stop();
  void ask(const StepRequests& requests);
  bool stopped() const;  // by stop(), ask() or a signal

  const std::map<std::string, std::string>& settings() const;  // as the run's checkpoints keep them

 private:
  friend class StepOwner;
  template <typename Loader>
  friend class StepRange;
  class Impl;

  void add_model(Model& model, optim::AnyOptimizer* optimizer, const std::string& prefix);
  void begin_loop(const LoaderShape& shape);
  bool begin_step();  // false: the loop has ended
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

// The remaining steps of a run.
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
    if constexpr (requires { loader.has(std::int64_t{}); })
      shape.has = [&loader](std::int64_t step) { return loader.has(step); };
    if constexpr (requires { loader.tokens_per_sample(); }) shape.tokens_per_sample = loader.tokens_per_sample();
    if constexpr (data::ReportingLoader<Loader>) shape.report = [&loader] { return loader.report(); };
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
