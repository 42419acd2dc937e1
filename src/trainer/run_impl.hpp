#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/decisions.hpp"
#include "trainer/place_in_data.hpp"
#include "trainer/run_checkpoints.hpp"
#include "trainer/run_observers.hpp"
#include "trainer/settings.hpp"
#include "trainer/signals.hpp"
#include "trireme/comm/base/node_turns.hpp"
#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/log.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/monitor/registry.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/trainer/run.hpp"

namespace trireme::trainer {

// What a run keeps.
class Run::Impl {
 public:
  struct Trained {
    Model* model;
    optim::AnyOptimizer* optimizer;  // null: it is evaluated only
    std::string prefix;
    double learning_rate = 0;                          // the optimizer's own
    std::unique_ptr<parallel::DataParallel> replicas;  // null without an optimizer
    Decisions decisions;

    // Before what is told of it: "generator: ".
    std::string title() const { return prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": "; }
  };

  Impl(const Group& group, const Options& all_options)
      : world(group), options(checked(group, all_options)), mesh(group, options.mesh), checkpoints(group, options) {
    done = checkpoints.resumed().value_or(0);
    if (world.rank() == 0) observers.emplace(options.process.standard_output, !options.metrics.empty());
    group.agree([this] { require_writable_metrics(); }, "open the metrics file");
    monitor::Registry::current().restart();  // what another run of this thread has left is none of this one
    if (listens()) listen_for_signals();
  }
  ~Impl() {
    tell_what_waits();
    observers.reset();
    if (listens()) stop_listening();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static const Options& checked(const Group& world, const Options& options) {
    world.agree([&] { check(options); }, "options of a run");
    require_same(world, "setting", settings_of(options));
    return options;
  }

  // With fixed bits they follow from the number of these; a loader refuses what does not divide.
  std::int64_t micro_batch_size() const {
    const auto* fixed = std::get_if<parallel::FixedBits>(&options.parallel.sum);
    if (fixed == nullptr || options.micro_batch_size > 0) return options.micro_batch_size;
    require(fixed->micro_batches > 0 && options.batch_size % fixed->micro_batches == 0,
            "a batch of {} samples does not divide into the {} micro-batches of FixedBits", options.batch_size,
            fixed->micro_batches);
    require(fixed->micro_batches % mesh.data().size() == 0,
            "{} micro-batches of fixed bits cannot be shared equally by {} ranks; use a multiple of {}", fixed->micro_batches,
            mesh.data().size(), mesh.data().size());
    return options.batch_size / fixed->micro_batches;
  }

  // The samples that these ranks share out.
  data::BatchOptions batch_between(const Group& ranks) const {
    return {.batch_size = options.batch_size,
            .micro_batch_size = micro_batch_size(),
            .seed = options.seed,
            .index = ranks.rank(),
            .count = ranks.size(),
            .uneven = true};
  }

  // What a file holds may still be wanted: it is opened for good once the run is accepted.
  void open_metrics() {
    if (observers && !options.metrics.empty()) observers->open_metrics(options.metrics, done);
  }

  // Reports of a run that has optimizers and no loop.
  void tell_what_waits() noexcept {
    if (!settings_fit || in_loop || !observers || !observers->has_waiting()) return;
    try {
      open_metrics();
    } catch (const std::exception& error) {
      log(Severity::warning, "metrics are lost: {}", error.what());
    }
  }

  // Leaves no file where there was none.
  void require_writable_metrics() const {
    if (world.rank() != 0 || options.metrics.empty()) return;
    const char* path = options.metrics.c_str();
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    const bool is_new = file < 0 && errno == ENOENT;
    if (is_new) file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) {
      throw Error({.code = ErrorCode::io,
                   .message = "the metrics file can't be opened",
                   .path = options.metrics,
                   .error_number = errno});
    }
    close(file);
    if (is_new) unlink(path);
  }

  bool holds_metrics() const {  // known to rank 0 alone
    std::error_code unknown;
    return world.rank() == 0 && !options.metrics.empty() && std::filesystem::is_regular_file(options.metrics, unknown) &&
           std::filesystem::file_size(options.metrics, unknown) > 0 && !unknown;
  }

  // On a terminal, in what the loader counts.
  void watch() {
    if (!observers || !options.process.terminal) return;
    monitor::TerminalOptions shown{.unit = place.shape().tokens_per_sample > 0 ? "tokens" : "samples", .shown = {}};
    for (const Trained& each : models) {
      if (each.optimizer != nullptr) shown.shown.push_back(each.prefix + "loss");
    }
    observers->watch(shown);
  }

  void add_to(State& state) {
    for (const Trained& each : models) {
      if (each.optimizer == nullptr) {
        each.model->store().add_to(state, each.prefix + "model.");
        continue;
      }
      each.replicas->add_to(state, each.prefix);
      each.optimizer->add_to(state, each.prefix + "optimizer.");
    }
    for (const auto& more : kept) more(state);
  }

  // Whose step is that of the loop. Null: nothing is trained.
  const Trained* first_trained() const {
    const auto found = std::ranges::find_if(models, [](const Trained& each) { return each.optimizer != nullptr; });
    return found == models.end() ? nullptr : &*found;
  }

  void load() {
    if (loaded) return;
    loaded = true;
    const bool whole = models.empty() || first_trained() != nullptr;
    if (checkpoints.on() && !checkpoints.resumed() && !whole) {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = "there is no checkpoint whose model could be evaluated",
                   .path = options.checkpoints.directory.string(),
                   .hint = "name the directory of a training run"});
    }
    if (whole) checkpoints.prepare();
    const auto lines = checkpoints.load([this](State& state) { add_to(state); }, whole);
    settings_fit = true;
    for (const std::string& line : lines) note(line);
    if (whole) return;  // its loop opens the metrics, unless it is refused for its data
    if (holds_metrics()) {
      observers->leave_metrics();
      note(fmt::format("note: {} holds metrics already, and an evaluation leaves them: name another file for its own",
                       options.metrics));
    }
    world.agree([this] { open_metrics(); }, "open the metrics file");
  }

  void note(std::string_view line) {
    if (observers) observers->note(line);
  }

  // What the loader knows of its data, unless the program has described them.
  void describe(const LoaderShape& shape) {
    if (!checkpoints.on()) return;
    std::map<std::string, std::string> data{{"samples_per_epoch", std::to_string(shape.samples_per_epoch)}};
    if (shape.content && !checkpoints.settings().contains("data_content")) {
      std::string content;
      take_turns_on_nodes(
          world, [&] { content = shape.content(); }, "digest the data");
      const auto of_all = world.gather_texts(content, "digests of the data");
      const bool is_same = std::ranges::all_of(of_all, [&](const std::string& text) { return text == content; });
      if (is_same) data["data_content"] = content;  // otherwise each rank reads its own
    }
    for (const auto& [name, value] : data) {
      if (checkpoints.settings().contains(name)) continue;
      for (const std::string& line : checkpoints.describe_data(name, value, options.allow_other_data)) note(line);
    }
  }

  bool due_for_checkpoint() const {
    const auto* seconds = std::get_if<Seconds>(&options.checkpoint_every);
    if (seconds != nullptr) return false;  // rank 0 asks all
    return place.passed(options.checkpoint_every, done) >
           place.passed(options.checkpoint_every, std::max<std::int64_t>(done - 1, 0));
  }

  // What this rank asks of all.
  StepRequests take_requests() {
    StepRequests requests = std::exchange(asked, {});
    requests.checkpoint = requests.checkpoint || checkpoints.is_time();
    requests.stop = requests.stop || (listens() && signal_asks_to_stop()) || is_time_up();
    return requests;
  }
  bool listens() const { return options.process.signals && checkpoints.on() && !only_evaluates; }
  bool is_time_up() const {
    const auto* seconds = std::get_if<Seconds>(&options.until);
    return seconds != nullptr && world.rank() == 0 && elapsed_seconds() >= seconds->count;
  }
  // Of the loop, over all starts.
  double elapsed_seconds() const { return checkpoints.seconds_before() + (in_loop ? since_start.seconds() : 0); }

  // With the step whose body has updated.
  std::int64_t done_so_far() const { return done + (in_body && !in_step ? 1 : 0); }

  bool has_ended() const { return stop_now || (steps && done >= *steps); }

  // Why a loop ended before its last step: a signal may have reached one rank alone, and the time is known to rank 0.
  void agree_on_end() {
    std::array<std::int32_t, 2> why{listens() && signal_asks_to_stop() ? 1 : 0, is_time_up() ? 1 : 0};
    if (stop_now && world.size() > 1) world.all_reduce(std::span(why), ReduceOp::max, "why a run ends").wait_on_host();
    by_signal = stop_now && why[0] != 0;
    by_clock = why[1] != 0;
  }

  double share() const {
    if (const auto* seconds = std::get_if<Seconds>(&options.until)) return std::min(1.0, elapsed_seconds() / seconds->count);
    return steps && *steps > 0 ? static_cast<double>(done) / static_cast<double>(*steps) : 1;
  }

  // What the rate of an optimizer becomes in each step, where the options have no function of their own.
  optim::LearningRate scheduled(double base) const {
    if (!steps) {  // nobody knows the end at which it could fall
      return optim::warmup_stable_decay(
          {.base = base, .warmup = options.warmup, .total = std::numeric_limits<std::int64_t>::max()});
    }
    return optim::warmup_cosine({.base = base,
                                 .warmup = std::min(options.warmup, *steps),
                                 .total = *steps,
                                 .minimum = base * options.minimum_learning_rate_ratio});
  }

  // In words; run_words.cpp.
  void tell_of_steps();                         // once: what a run of another length, too, would do otherwise
  void tell_of_short_grace();                   // once, after the second step: the first says little of the others
  void tell_decisions();                        // of how gradients are summed
  std::vector<std::string> last_words() const;  // how the steps of this start went

  // What the loader counts, in each second between the ends of two steps.
  void tell_rate() {
    const std::int64_t tokens = place.shape().tokens_per_sample;
    const auto samples = static_cast<double>(place.samples_of(done) - place.samples_of(done - 1));
    const double seconds = since_last_step.restart();
    step_seconds = seconds;
    monitor::Registry::current()
        .gauge(tokens > 0 ? "tokens_per_second" : "samples_per_second")
        .set(samples * static_cast<double>(std::max<std::int64_t>(tokens, 1)) / seconds);
  }

  monitor::Snapshot snapshot() const {
    const auto epoch_samples = static_cast<double>(place.shape().samples_per_epoch);
    return {
        .step = done,
        .steps = steps,
        .epoch = epoch_samples > 0 ? std::optional(static_cast<double>(place.samples_of(done)) / epoch_samples) : std::nullopt,
        .share = share(),
        .last = has_ended(),
        .metrics = monitor::Registry::current().take()};
  }

  Group world;
  Options options;
  ProcessMesh mesh;
  RunCheckpoints checkpoints;
  std::optional<RunObservers> observers;  // of rank 0
  std::deque<Trained> models;
  std::vector<std::function<void(State&)>> kept;
  std::vector<std::function<void(const StepReport&, StepRequests&)>> callbacks;
  PlaceInData place;
  std::optional<std::int64_t> steps;
  std::int64_t done = 0;
  std::int64_t first_step = 0;  // of this start
  Stopwatch since_start;
  Stopwatch since_last_step;  // ended
  double step_seconds = 0;    // of the newest step, with what lies between it and the one before
  StepRequests asked;
  std::optional<double> first_loss;
  double last_loss = 0;
  double exposed_seconds = 0;
  bool loaded = false;
  bool settings_fit = false;  // those of the checkpoint that was loaded; its data are compared as the loop begins
  bool steps_are_told = false;
  bool in_loop = false;
  bool in_body = false;    // of the loop
  bool has_asked = false;  // the ranks, in this step
  bool in_step = false;    // between the start of the body and update()
  bool stop_now = false;   // agreed on by all ranks
  bool by_signal = false;
  bool by_clock = false;
  bool time_is_up = false;      // after this step: all ranks know it
  bool only_evaluates = false;  // there is nothing to save on a signal
};

}  // namespace trireme::trainer
