#include "trireme/trainer/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <variant>

#include "trainer/run_impl.hpp"
#include "trainer/signals.hpp"
#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_content.hpp"
#include "trireme/monitor/registry.hpp"
#include "trireme/nn/base/metrics.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"

namespace trireme::trainer {

Run::Run(const Group& world, const Options& options) : impl_(std::make_unique<Impl>(world, options)) {}
Run::~Run() = default;

const Group& Run::world() const { return impl_->world; }
const ProcessMesh& Run::mesh() const { return impl_->mesh; }
const Options& Run::options() const { return impl_->options; }
std::int64_t Run::done() const { return impl_->done_so_far(); }
std::optional<std::int64_t> Run::total_steps() const { return impl_->steps; }

ModelContext Run::context(std::vector<double> layer_costs) const {
  const Options& options = impl_->options;
  return parallel::model_context(impl_->mesh, {.sequence_parallel = options.sequence_parallel,
                                               .num_chunks = options.chunks,
                                               .layer_costs = std::move(layer_costs),
                                               .seed = options.seed,
                                               .batch_size = options.batch_size});
}

data::BatchOptions Run::batch() const { return impl_->batch_between(impl_->mesh.batch()); }

// The ranks of an expert axis compute together, so they evaluate the same.
data::BatchOptions Run::evaluation_batch() const { return impl_->batch_between(impl_->mesh.data()); }

void Run::add_model(Model& model, optim::AnyOptimizer* optimizer, const std::string& prefix) {
  require(!impl_->loaded, "models are added to a run before its loop, and before what loads its checkpoint");
  for (const Impl::Trained& each : impl_->models) {
    require(each.model != &model, "this model was added to the run before");
    require(optimizer == nullptr || each.optimizer != optimizer,
            "this optimizer was added to the run before, with another model");
    require(each.prefix != prefix,
            "the models of a run have prefixes that differ, \"generator.\" and \"discriminator.\": \"{}\" is taken", prefix);
  }
  if (optimizer == nullptr) {
    impl_->models.push_back({.model = &model, .optimizer = nullptr, .prefix = prefix, .replicas = nullptr, .decisions = {}});
    return;
  }
  // Steps nest: each model's ranks are a group of their own.
  const bool first = impl_->first_trained() == nullptr;
  const Group& world = impl_->world;
  const ProcessMesh mesh = first ? impl_->mesh : ProcessMesh(world.split(0, world.rank(), prefix), impl_->options.mesh);
  const auto& base_rate = impl_->options.base_learning_rate;
  require(first || !base_rate, "a learning rate of {} for all models of a run: each optimizer has one of its own, leave it out",
          base_rate.value_or(0));
  parallel::ParallelOptions options = impl_->options.parallel;
  options.metrics_prefix = prefix;
  impl_->models.push_back({.model = &model,
                           .optimizer = optimizer,
                           .prefix = prefix,
                           .replicas = std::make_unique<parallel::DataParallel>(model, mesh, options),
                           .decisions = {}});
}

void Run::keep(std::function<void(State&)> add_to) {
  require(!impl_->loaded, "what a checkpoint keeps is told before the run's loop, and before what loads its checkpoint");
  impl_->kept.push_back(std::move(add_to));
}

void Run::describe(const std::string& name, const std::string& value, Differs differs,
                   const std::optional<std::string>& absent) {
  require(!impl_->loaded, "settings are described before the run's loop, and before what loads its checkpoint");
  require_same(impl_->world, "setting", {{name, value}});
  impl_->world.agree([&] { impl_->checkpoints.describe(name, value, {.differs = differs, .absent = absent}); },
                     "settings of a program");
}

void Run::describe_data(const std::filesystem::path& path) {
  require(!impl_->loaded, "data are described before the run's loop, and before what loads its checkpoint");
  if (!impl_->checkpoints.on()) return;
  std::string content;
  take_turns_on_nodes(
      impl_->world, [&] { content = content_at(path); }, "digest the data");
  require_same(impl_->world, "setting", {{"data_content", content}});
  std::string name = "data_content";
  for (int number = 2; impl_->checkpoints.settings().contains(name); ++number) name = fmt::format("data_content_{}", number);
  impl_->checkpoints.describe_data(name, content, impl_->options.allow_other_data);
}

void Run::load() { impl_->load(); }

void Run::begin_loop(const LoaderShape& shape) {
  Impl& run = *impl_;
  require(!run.in_loop, "a run has one loop: its steps() are gone through once");
  require(shape.batch_size == run.options.batch_size && shape.num_micro_batches > 0,
          "the loader has batches of {} samples, the run of {}: make the loader with run.batch()", shape.batch_size,
          run.options.batch_size);
  run.in_loop = true;
  run.place = PlaceInData(shape);
  run.steps = run.place.steps_of(run.options.until);
  run.watch();
  for (Impl::Trained& each : run.models) {
    if (each.optimizer == nullptr) continue;
    each.learning_rate = run.options.base_learning_rate.value_or(each.optimizer->learning_rate());
  }
  run.describe(shape);
  run.load();
  if (run.checkpoints.on()) {  // what would fail at the first checkpoint fails now
    State state;
    run.add_to(state);
    run.due_for_checkpoint();
  }
  run.checkpoints.record(run.options);
  run.first_step = run.done;
  run.start = run.last_step = std::chrono::steady_clock::now();
  const auto* seconds = std::get_if<Seconds>(&run.options.until);
  run.stop_now = run.stop_now || (seconds != nullptr && run.checkpoints.seconds_before() >= seconds->count);
}

bool Run::begin_step() {
  if (impl_->has_ended()) return false;
  impl_->in_body = true;
  impl_->in_step = impl_->first_trained() != nullptr;
  impl_->has_asked = false;
  return true;
}

void Run::require_updated() const {
  require(!impl_->in_step, "step {} has ended without step.update(optimizer): nothing was learnt from its batches",
          impl_->done);
}

void Run::end_step(const StepSummary* summary) {
  Impl& run = *impl_;
  StepRequests agreed;
  StepReport report{.step = run.done, .steps = run.steps};
  if (summary != nullptr) {
    agreed = summary->requests;
    report.loss = summary->loss();
    report.gradient_norm = summary->gradient_norm;
    report.target_weight = summary->target_weight;
    report.is_finite = summary->is_finite();
    run.exposed_seconds += summary->exposed_communication_seconds;
    if (!run.first_loss) run.first_loss = report.loss;
    run.last_loss = report.loss;
  } else {
    const StepRequests own = run.take_requests();
    std::array<std::int32_t, 2> any{own.stop ? 1 : 0, own.checkpoint ? 1 : 0};
    if (run.world.size() > 1) run.world.all_reduce(std::span(any), ReduceOp::max, "requests of a step").wait_on_host();
    agreed = {.stop = any[0] != 0, .checkpoint = any[1] != 0};
  }
  run.in_body = false;
  ++run.done;
  monitor::Registry& registry = monitor::Registry::current();
  const auto samples = static_cast<double>(run.place.samples_of(run.done) - run.place.samples_of(run.done - 1));
  registry.counter("samples").add(samples);
  if (run.place.shape().tokens_per_sample > 0)
    registry.counter("tokens").add(samples * static_cast<double>(run.place.shape().tokens_per_sample));
  run.tell_rate();
  for (const auto& callback : run.callbacks) {
    const WithoutCollectives guard("a callback of Run::after_step");
    callback(report, run.asked);
  }
  run.stop_now = run.stop_now || agreed.stop;
  const auto add_to = [&run](State& state) { run.add_to(state); };
  const bool save = run.checkpoints.on() && (agreed.checkpoint || run.due_for_checkpoint());
  std::vector<std::string> lines;
  const auto tell = [&] {
    if (!report.is_finite) note(fmt::format("step {} is skipped: its loss or gradients are not finite", report.step + 1));
    run.tell_decisions();
    if (run.observers && !run.observers->none()) run.observers->step(run.snapshot());
    run.tell_of_short_grace();
    for (const std::string& line : lines) note(line);
  };
  // Saved first, told afterwards: whatever becomes of those who watch, the step is safe.
  try {
    lines = run.checkpoints.after_step({.done = run.done,
                                        .seconds = run.elapsed_seconds(),
                                        .loss = fmt::format("{:.4f}", report.loss),
                                        .save = save,
                                        .last = run.has_ended()},
                                       add_to);
  } catch (...) {
    tell();
    throw;
  }
  tell();
}

void Run::end_loop() {
  Impl& run = *impl_;
  run.agree_on_end();
  if (run.by_signal) {
    note(fmt::format("stopped on a signal after step {}, which is saved", run.done));
  } else if (run.done == run.first_step && run.steps && run.done >= *run.steps) {
    note(fmt::format("all {} steps were done before", *run.steps));
  } else if (run.done == run.first_step && run.by_clock) {
    note(fmt::format("all {} had passed before", to_text(run.options.until)));
  }
  if (run.done > run.first_step) {
    for (const std::string& line : run.last_words()) note(line);
  }
  run.checkpoints.report(run.by_signal ? RunState::stopped : RunState::finished);
  if (run.by_signal) forget_signals();
}

parallel::Step Run::begin(Model& model, int micro_batches) {
  for (const Impl::Trained& each : impl_->models) {
    if (each.model == &model && each.optimizer != nullptr) return each.replicas->begin(impl_->done, micro_batches);
  }
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "begin() got a model that the run does not train",
               .hint = "call run.add(model, optimizer) before the loop"});
}

optim::UpdateOptions Run::update_options(const optim::AnyOptimizer& optimizer) const {
  const Options& options = impl_->options;
  const auto found = std::ranges::find(impl_->models, &optimizer, &Impl::Trained::optimizer);
  require(found != impl_->models.end(), "update() got an optimizer that the run does not know: call run.add(model, optimizer)");
  optim::UpdateOptions update{.clip_norm = options.clip_norm,
                              .clip_value = options.clip_value,
                              .non_finite = options.non_finite,
                              .max_skipped = options.max_skipped};
  if (options.learning_rate) {
    update.learning_rate = options.learning_rate(impl_->done);
  } else {
    update.learning_rate = impl_->scheduled(found->learning_rate)(impl_->done);
  }
  impl_->tell_of_steps();
  return update;
}

bool Run::due(const Place& every) const {
  require(impl_->in_body && !impl_->in_step, "due() is asked in the loop, after step.update(optimizer)");
  const Amount amount = std::visit([](const auto& place) { return Amount(place); }, every);
  require(std::visit([](const auto& place) { return place.count > 0; }, every), "due() is asked about more than {}",
          to_text(amount));
  const std::int64_t after = impl_->done_so_far();
  return (impl_->steps && after >= *impl_->steps) || impl_->time_is_up || impl_->stop_now ||
         impl_->place.passed(amount, after) > impl_->place.passed(amount, after - 1);
}

void Run::begin_evaluation() {
  require(!impl_->in_step,
          "evaluate() before step.update(optimizer): the step is open, and its values are about to change; evaluate after it");
  if (impl_->listens() && impl_->first_trained() == nullptr) {
    stop_listening();
    impl_->only_evaluates = true;
  }
  impl_->load();
}

void Run::all_reduce(std::span<Mean> means) const { trireme::all_reduce(impl_->mesh.batch(), means); }

void Run::report(std::initializer_list<std::pair<std::string_view, double>> values) {
  std::string line;
  for (const auto& [name, value] : values) {
    monitor::Registry::current().gauge(name).set(value);
    line += fmt::format("{}{} {:.4g}", line.empty() ? "" : "  ", name, value);
  }
  if (!impl_->in_body && impl_->observers && !impl_->observers->none()) impl_->observers->report(impl_->snapshot());
  note(fmt::format("step {}: {}", impl_->done_so_far(), line));
}

void Run::note(std::string_view line) { impl_->note(line); }

void Run::add_sink(std::unique_ptr<monitor::Sink> sink) {
  require(sink != nullptr, "add_sink() got no sink");
  if (impl_->observers) impl_->observers->add(std::move(sink));
}

void Run::after_step(std::function<void(const StepReport&, StepRequests&)> callback) {
  impl_->callbacks.push_back(std::move(callback));
}

void Run::stop() { impl_->stop_now = true; }

void Run::ask(const StepRequests& requests) {
  impl_->asked.stop = impl_->asked.stop || requests.stop;
  impl_->asked.checkpoint = impl_->asked.checkpoint || requests.checkpoint;
}

const std::map<std::string, std::string>& Run::settings() const { return impl_->checkpoints.settings(); }

bool Run::stopped() const { return impl_->stop_now && !impl_->by_clock; }

std::optional<parallel::Step> StepOwner::begin() {
  Run::Impl& run = *run_->impl_;
  const Run::Impl::Trained* trained = run.first_trained();
  if (trained == nullptr) return std::nullopt;
  return trained->replicas->begin(run.done, static_cast<int>(run.place.shape().num_micro_batches));
}

std::int64_t StepOwner::number() const { return run_->impl_->done; }

void StepOwner::ask(parallel::Step& step) {
  Run::Impl& run = *run_->impl_;
  if (run.in_step && !std::exchange(run.has_asked, true)) step.ask(run.take_requests());
}

const StepSummary& StepOwner::finish(parallel::Step& step) {
  ask(step);
  const StepSummary& summary = step.finish();
  run_->impl_->time_is_up = summary.requests.stop && std::holds_alternative<Seconds>(run_->impl_->options.until);
  return summary;
}

bool StepOwner::update(parallel::Step& step, optim::AnyOptimizer& optimizer, const optim::UpdateOptions* options) {
  Run::Impl& run = *run_->impl_;
  require(run.in_step, "update() of step {} after its end: a step has one", run.done);
  const optim::UpdateOptions update = options == nullptr ? run_->update_options(optimizer) : *options;
  finish(step);
  run.in_step = false;
  return step.update(optimizer, update);
}

}  // namespace trireme::trainer
