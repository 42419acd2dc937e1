#include "trireme/trainer/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "trainer/run_impl.hpp"
#include "trainer/settings.hpp"
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
  parallel::ModelContextOptions options = context_of(impl_->options, impl_->mesh);
  options.layer_costs = std::move(layer_costs);
  return parallel::model_context(impl_->mesh, options);
}

data::BatchOptions Run::batch() const { return batch_of(impl_->options, impl_->mesh, impl_->mesh.batch()); }

// The ranks of an expert axis compute together, so they evaluate the same samples.
data::BatchOptions Run::evaluation_batch() const { return batch_of(impl_->options, impl_->mesh, impl_->mesh.data()); }

void Run::add_model(Model& model, optim::AnyOptimizer* optimizer, const std::string& prefix) {
  impl_->require_phase(RunCall::add);
  impl_->models.require_free(model, optimizer, prefix);
  if (optimizer == nullptr) {
    impl_->models.add({.model = &model, .optimizer = nullptr, .prefix = prefix, .replicas = nullptr, .decisions = {}});
    return;
  }
  // Steps nest, so each model needs its own group.
  const bool first = impl_->models.first_trained() == nullptr;
  const Group& world = impl_->world;
  const ProcessMesh mesh = first ? impl_->mesh : ProcessMesh(world.split(0, world.rank(), prefix), impl_->options.mesh);
  if (!first) check_several_models(impl_->options);
  parallel::ParallelOptions options = impl_->options.parallel;
  options.metrics_prefix = prefix;
  impl_->models.add({.model = &model,
                     .optimizer = optimizer,
                     .prefix = prefix,
                     .replicas = std::make_unique<parallel::DataParallel>(model, mesh, options),
                     .decisions = {}});
}

void Run::keep(std::function<void(State&)> add_to) {
  impl_->require_phase(RunCall::keep);
  impl_->models.keep(std::move(add_to));
}

void Run::describe(const std::string& name, const std::string& value, Differs differs,
                   const std::optional<std::string>& absent) {
  impl_->require_phase(RunCall::describe);
  require_same(impl_->world, "setting", {{name, value}});
  impl_->world.agree([&] { impl_->checkpoints.describe(name, value, {.rule = {.differs = differs, .absent = absent}}); },
                     "settings of a program");
}

void Run::describe_data(const Location& path) {
  impl_->require_phase(RunCall::describe_data);
  if (!impl_->checkpoints.on()) return;
  std::string content;
  take_turns_on_nodes(
      impl_->world, [&] { content = content_at(path); }, "digest the data");
  require_same(impl_->world, "setting", {{"data_content", content}});
  std::string name = "data_content";
  for (int number = 2; impl_->checkpoints.settings().contains(name); ++number) name = fmt::format("data_content_{}", number);
  impl_->checkpoints.describe_data(name, content, other_data_of(impl_->options));
}

void Run::load() { impl_->load_without_loop(); }

void Run::begin_loop(const LoaderShape& shape) {
  Impl& run = *impl_;
  run.require_phase(RunCall::steps);
  run.accepted = false;
  require(shape.batch_size == run.options.batch_size && shape.num_micro_batches > 0,
          "the loader has batches of {} samples, the run of {}: make the loader with run.batch()", shape.batch_size,
          run.options.batch_size);
  for (const auto& [step, size] : run.options.batch_size_from_step) {
    const std::int64_t samples = shape.samples_of_steps(step + 1) - shape.samples_of_steps(step);
    require(samples == size,
            "the loader has a batch of {} samples in step {}, the run one of {}: make the loader with run.batch(), and give a "
            "loader of your own samples_of_steps()",
            samples, step, size);
  }
  run.place = PlaceInData(shape);
  run.steps = run.place.steps_of(run.options.until);
  run.watch();
  for (RunModel& each : run.models.all()) {
    if (each.optimizer == nullptr) continue;
    each.learning_rate = highest_rate_of(run.options, each.optimizer->learning_rate());
  }
  run.describe(shape);
  run.load();
  run.require_data();
  if (run.checkpoints.on()) {  // so that errors of the first checkpoint are thrown now
    State state;
    run.models.add_to(state);
    run.due_for_checkpoint();
  }
  run.world.agree([&run] { run.open_metrics(); }, "open the metrics file");
  run.checkpoints.record(run.options);
  run.this_start.first_step = run.done;
  run.this_start.since_start.restart();
  run.this_start.since_last_step.restart();
  const auto* seconds = std::get_if<Seconds>(&run.options.until);
  if (seconds != nullptr && run.checkpoints.seconds_before() >= seconds->count) run.end(Ending::time_over);
  run.phase.enter(Phase::between_steps);
}

bool Run::begin_step() {
  if (impl_->has_ended()) return false;
  impl_->phase.enter(impl_->models.first_trained() != nullptr ? Phase::in_step : Phase::updated);
  return true;
}

void Run::require_updated() const { impl_->require_phase(RunCall::next_step); }

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
    run.this_start.exposed_seconds += summary->exposed_communication_seconds;
    if (!run.this_start.first_loss) run.this_start.first_loss = report.loss;
    run.this_start.last_loss = report.loss;
  } else {
    const StepRequests own = run.take_requests();
    std::array<std::int32_t, 2> any{own.stop ? 1 : 0, own.checkpoint ? 1 : 0};
    if (run.world.size() > 1) run.world.all_reduce(std::span(any), ReduceOp::max, "requests of a step").wait_on_host();
    agreed = {.stop = any[0] != 0, .checkpoint = any[1] != 0};
  }
  run.phase.enter(Phase::between_steps);
  ++run.done;
  monitor::Registry& registry = monitor::Registry::current();
  const auto samples = static_cast<double>(run.place.samples_of(run.done) - run.place.samples_of(run.done - 1));
  registry.counter("samples").add(samples);
  if (run.place.shape().tokens_per_sample > 0)
    registry.counter("tokens").add(samples * static_cast<double>(run.place.shape().tokens_per_sample));
  run.tell_rate();
  run.tell_data();
  for (const auto& callback : run.callbacks) {
    const WithoutCollectives guard("a callback of Run::after_step");
    callback(report, run.asked);
  }
  if (agreed.stop) run.end(Ending::asked);
  const auto add_to = [&run](State& state) { run.models.add_to(state); };
  const bool save = run.checkpoints.on() && (agreed.checkpoint || run.due_for_checkpoint());
  std::vector<std::string> lines;
  const auto tell = [&] {
    if (!report.is_finite) note(fmt::format("step {} is skipped: its loss or gradients are not finite", report.step + 1));
    run.tell_decisions();
    if (run.observers && !run.observers->none()) run.observers->step(run.snapshot());
    run.tell_of_short_grace();
    for (const std::string& line : lines) note(line);
  };
  // Saves before it reports, so that a failing observer can't prevent the checkpoint.
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
  run.phase.enter(Phase::ended);
  run.agree_on_ending();
  const bool nothing_done = run.done == run.this_start.first_step;
  if (run.ending == Ending::signal) {
    note(fmt::format("stopped on a signal after step {}, which is saved", run.done));
  } else if (nothing_done && run.steps && run.done >= *run.steps) {
    note(fmt::format("all {} steps were done before", *run.steps));
  } else if (nothing_done && run.ending == Ending::time_over) {
    note(fmt::format("all {} had passed before", to_text(run.options.until)));
  } else if (run.ending == Ending::data_over) {
    note(nothing_done ? "all data were read before" : fmt::format("the data ended after step {}", run.done));
  }
  if (!nothing_done) {
    for (const std::string& line : run.last_words(run.bad_samples_of_all())) note(line);
  }
  run.checkpoints.report(run.ending == Ending::signal ? RunState::stopped : RunState::finished);
}

parallel::Step Run::begin(Model& model, int micro_batches) {
  for (const RunModel& each : impl_->models.all()) {
    if (each.model != &model || each.optimizer == nullptr) continue;
    parallel::Step step = each.replicas->begin(impl_->done, micro_batches);
    if (!impl_->options.batch_size_from_step.empty()) {
      step.set_samples(impl_->place.samples_of(impl_->done + 1) - impl_->place.samples_of(impl_->done));
    }
    return step;
  }
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "begin() got a model that the run does not train",
               .hint = "call run.add(model, optimizer) before the loop"});
}

optim::UpdateOptions Run::update_options(const optim::AnyOptimizer& optimizer) const {
  const auto& models = impl_->models.all();
  const auto found = std::ranges::find(models, &optimizer, &RunModel::optimizer);
  require(found != models.end(), "update() got an optimizer that the run does not know: call run.add(model, optimizer)");
  optim::UpdateOptions update = update_of(impl_->options);
  update.learning_rate =
      rate_of(impl_->options, found->learning_rate, impl_->steps)(impl_->done) * rate_factor_of(impl_->options, impl_->done);
  impl_->tell_of_steps();
  return update;
}

bool Run::due(const Place& every) const {
  impl_->require_phase(RunCall::due);
  const Amount amount = std::visit([](const auto& place) { return Amount(place); }, every);
  require(std::visit([](const auto& place) { return place.count > 0; }, every), "due() takes more than {}", to_text(amount));
  const std::int64_t after = impl_->done_so_far();
  return (impl_->steps && after >= *impl_->steps) || impl_->ending != Ending::none ||
         impl_->place.passed(amount, after) > impl_->place.passed(amount, after - 1);
}

void Run::begin_evaluation() {
  impl_->require_phase(RunCall::evaluate);
  if (impl_->models.first_trained() == nullptr) impl_->listening.reset();
  impl_->load_without_loop();
}

void Run::all_reduce(std::span<Mean> means) const { trireme::all_reduce(impl_->mesh.batch(), means); }

void Run::report(std::initializer_list<std::pair<std::string_view, double>> values) {
  std::string line;
  for (const auto& [name, value] : values) {
    monitor::Registry::current().gauge(name).set(value);
    line += fmt::format("{}{} {:.4g}", line.empty() ? "" : "  ", name, value);
  }
  if (!impl_->phase.in_body() && impl_->observers && !impl_->observers->none()) impl_->observers->report(impl_->snapshot());
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

void Run::stop() { impl_->end(Ending::asked); }

void Run::ask(const StepRequests& requests) {
  impl_->asked.stop = impl_->asked.stop || requests.stop;
  impl_->asked.checkpoint = impl_->asked.checkpoint || requests.checkpoint;
}

const std::map<std::string, std::string>& Run::settings() const { return impl_->checkpoints.settings(); }

bool Run::stopped() const { return impl_->ending == Ending::asked || impl_->ending == Ending::signal; }

std::optional<parallel::Step> StepOwner::begin() {
  Run::Impl& run = *run_->impl_;
  const RunModel* trained = run.models.first_trained();
  if (trained == nullptr) return std::nullopt;
  return trained->replicas->begin(run.done, static_cast<int>(run.place.shape().num_micro_batches));
}

std::int64_t StepOwner::number() const { return run_->impl_->done; }

void StepOwner::add_waiting_for_data(double seconds) const {
  run_->impl_->this_start.waiting_for_data_seconds += seconds;
  monitor::Registry::current().counter("data_waiting_seconds").add(seconds);
}

const StepSummary& StepOwner::finish(parallel::Step& step) {
  Run::Impl& run = *run_->impl_;
  if (run.phase.now() == Phase::in_step) {
    step.ask(run.take_requests());
    run.phase.enter(Phase::finished);
  }
  const StepSummary& summary = step.finish();
  if (summary.requests.stop && std::holds_alternative<Seconds>(run.options.until)) run.end(Ending::time_over);
  if (summary.requests.stop && run.place.shape().has) run.end(Ending::data_over);
  return summary;
}

bool StepOwner::update(parallel::Step& step, optim::AnyOptimizer& optimizer, const optim::UpdateOptions* options) {
  Run::Impl& run = *run_->impl_;
  run.require_phase(RunCall::update);
  const optim::UpdateOptions update = options == nullptr ? run_->update_options(optimizer) : *options;
  finish(step);
  run.phase.enter(Phase::updated);
  return step.update(optimizer, update);
}

}  // namespace trireme::trainer
