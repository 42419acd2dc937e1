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

#include "trainer/option_table.hpp"
#include "trainer/place_in_data.hpp"
#include "trainer/run_checkpoints.hpp"
#include "trainer/run_models.hpp"
#include "trainer/run_observers.hpp"
#include "trainer/run_phase.hpp"
#include "trainer/signals.hpp"
#include "trireme/comm/base/node_turns.hpp"
#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/log.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/monitor/registry.hpp"
#include "trireme/trainer/run.hpp"

namespace trireme::trainer {

// Why the loop ends before the run's last step; the same on all ranks.
enum class Ending : std::uint8_t {
  none,
  asked,      // by stop() or ask()
  signal,     // on any rank
  time_over,  // the run lasts so many Seconds; before agree_on_ending() possibly also `asked`
  data_over,  // a rank's data hold no more steps; likewise
};

// Statistics of the steps in this start of the run.
struct ThisStart {
  std::int64_t first_step = 0;
  Stopwatch since_start;
  Stopwatch since_last_step;  // since the end of the last step
  double step_seconds = 0;    // from the end of the last step but one to the end of the last
  std::optional<double> first_loss;
  double last_loss = 0;
  double exposed_seconds = 0;
  double waiting_for_data_seconds = 0;
  data::LoaderReport told;  // what the metrics have of the loader's report
  bool steps_are_told = false;
};

// The state of a run.
class Run::Impl {
 public:
  Impl(const Group& group, const Options& all_options)
      : world(group), options(checked(group, all_options)), mesh(group, options.mesh), checkpoints(group, options) {
    done = checkpoints.resumed().value_or(0);
    if (world.rank() == 0) observers.emplace(options.process.standard_output, !options.metrics.empty());
    group.agree([this] { require_writable_metrics(); }, "open the metrics file");
    monitor::Registry::current().restart();  // removes metrics of earlier runs on this thread
    if (options.process.signals && checkpoints.on()) listening.emplace();
  }
  ~Impl() {
    tell_what_waits();
    observers.reset();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static const Options& checked(const Group& world, const Options& options) {
    world.agree([&] { check(options); }, "options of a run");
    require_same(world, "setting", settings_of(options));
    return options;
  }

  // Opens the file of metrics. Only once the run can no longer be refused, since that may truncate the file.
  void open_metrics() {
    if (observers && !options.metrics.empty()) observers->open_metrics(options.metrics, done);
  }

  // Writes waiting reports of a run that has optimizers and no loop.
  void tell_what_waits() noexcept {
    if (!accepted || !observers || !observers->has_waiting()) return;
    try {
      open_metrics();
    } catch (const std::exception& error) {
      log(Severity::warning, "metrics are lost: {}", error.what());
    }
  }

  // Removes the file again if it was not there before.
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

  // Shows progress on the terminal, in tokens or samples.
  void watch() {
    if (!observers || !options.process.terminal) return;
    monitor::TerminalOptions shown{.unit = place.shape().tokens_per_sample > 0 ? "tokens" : "samples", .shown = {}};
    for (const RunModel& each : models.all()) {
      if (each.optimizer != nullptr) shown.shown.push_back(each.prefix + "loss");
    }
    observers->watch(shown);
  }

  void load() {
    if (phase.now() != Phase::preparing) return;
    phase.enter(Phase::loaded);
    const bool whole = models.empty() || models.first_trained() != nullptr;
    if (checkpoints.on() && !checkpoints.resumed() && !whole) {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = "there is no checkpoint whose model could be evaluated",
                   .path = options.checkpoints.directory.string(),
                   .hint = "name the directory of a training run"});
    }
    if (whole) checkpoints.prepare();
    const auto lines = checkpoints.load([this](State& state) { models.add_to(state); }, whole);
    for (const std::string& line : lines) note(line);
    if (whole) return;  // the loop opens the file of metrics, once the data are compared
    if (holds_metrics()) {
      observers->leave_metrics();
      note(fmt::format("note: {} holds metrics already, and an evaluation does not overwrite them: name another file",
                       options.metrics));
    }
    world.agree([this] { open_metrics(); }, "open the metrics file");
  }

  void load_without_loop() {
    load();
    accepted = true;
  }

  void note(std::string_view line) {
    if (observers) observers->note(line);
  }

  // Describes the data by the loader, unless the program has described them.
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
      for (const std::string& line : checkpoints.describe_data(name, value, other_data_of(options))) note(line);
    }
  }

  bool due_for_checkpoint() const {
    const auto* seconds = std::get_if<Seconds>(&options.checkpoint_every);
    if (seconds != nullptr) return false;  // rank 0 requests these
    return place.passed(options.checkpoint_every, done) >
           place.passed(options.checkpoint_every, std::max<std::int64_t>(done - 1, 0));
  }

  // This rank's requests to all ranks; resets them.
  StepRequests take_requests() {
    StepRequests requests = std::exchange(asked, {});
    requests.checkpoint = requests.checkpoint || checkpoints.is_time();
    lacks_data = lacks_data || ((!steps || done + 1 < *steps) && !has_data(done + 1));
    requests.stop = requests.stop || has_signal() || is_time_up() || lacks_data;
    return requests;
  }
  void require_phase(RunCall call) const { phase.require(call, done); }
  bool has_signal() const { return listening && signal_asks_to_stop(); }
  bool has_data(std::int64_t step) const { return !place.shape().has || place.shape().has(step); }
  bool is_time_up() const {
    const auto* seconds = std::get_if<Seconds>(&options.until);
    return seconds != nullptr && world.rank() == 0 && elapsed_seconds() >= seconds->count;
  }
  // Seconds in the loop, over all starts.
  double elapsed_seconds() const {
    return checkpoints.seconds_before() + (phase.loop_has_begun() ? this_start.since_start.seconds() : 0);
  }

  // Counts the current step once it has updated.
  std::int64_t done_so_far() const { return done + (phase.now() == Phase::updated ? 1 : 0); }

  bool has_ended() const { return ending != Ending::none || (steps && done >= *steps); }
  void end(Ending why) {
    if (ending == Ending::none) ending = why;
  }

  // A loop that goes on with this step needs the data for it. The same on all ranks.
  void require_data() {
    if (!place.shape().has || has_ended()) return;
    std::int32_t lacks = has_data(done) ? 0 : 1;
    if (world.size() > 1) world.all_reduce(std::span(&lacks, 1), ReduceOp::max, "the data of a run").wait_on_host();
    if (lacks == 0) return;
    lacks_data = true;
    require(done > 0, "the data hold no batch of {} samples: there is nothing to train on", options.batch_size);
    end(Ending::data_over);
  }

  // Makes all ranks know why the loop ended early: a signal or the end of the data may have reached only one rank, and only
  // rank 0 looks at the clock.
  void agree_on_ending() {
    if (ending == Ending::none) return;
    std::array<std::int32_t, 3> why{has_signal() ? 1 : 0, is_time_up() ? 1 : 0, lacks_data ? 1 : 0};
    if (world.size() > 1) world.all_reduce(std::span(why), ReduceOp::max, "why a run ends").wait_on_host();
    ending = why[1] != 0 ? Ending::time_over : why[0] != 0 ? Ending::signal : why[2] != 0 ? Ending::data_over : Ending::asked;
    if (why[0] != 0) forget_signals();
  }

  double share() const {
    if (const auto* seconds = std::get_if<Seconds>(&options.until)) return std::min(1.0, elapsed_seconds() / seconds->count);
    return steps && *steps > 0 ? static_cast<double>(done) / static_cast<double>(*steps) : 1;
  }

  // Lines that the run prints; run_words.cpp.
  void tell_of_steps();        // once: length, learning rates and clipping
  void tell_of_short_grace();  // once, after the second step, since the first is slower than the others
  void tell_decisions();       // about how gradients are summed
  std::vector<std::string> last_words(std::int64_t bad_samples) const;  // a summary of this start's steps

  // Sets the gauge of tokens or samples per second, between the ends of the last two steps.
  void tell_rate() {
    const std::int64_t tokens = place.shape().tokens_per_sample;
    const auto samples = static_cast<double>(place.samples_of(done) - place.samples_of(done - 1));
    const double seconds = this_start.since_last_step.restart();
    this_start.step_seconds = seconds;
    monitor::Registry::current()
        .gauge(tokens > 0 ? "tokens_per_second" : "samples_per_second")
        .set(samples * static_cast<double>(std::max<std::int64_t>(tokens, 1)) / seconds);
  }

  // What the loader reports; run_data.cpp.
  void tell_data();                         // adds what it has done since the last step to the metrics
  std::int64_t bad_samples_of_all() const;  // a sample that two ranks have met counts twice. Collective

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
  RunModels models;
  std::vector<std::function<void(const StepReport&, StepRequests&)>> callbacks;
  PlaceInData place;
  std::optional<std::int64_t> steps;
  std::int64_t done = 0;
  StepRequests asked;  // by this rank, not yet sent to the others
  RunPhase phase;
  bool accepted = false;  // load() or evaluate() was called and no loop has begun
  Ending ending = Ending::none;
  bool lacks_data = false;  // this rank has none for the next step
  ThisStart this_start;
  std::optional<Listening> listening;     // to signals, if the run saves checkpoints
  std::optional<RunObservers> observers;  // on rank 0; destroyed first
};

}  // namespace trireme::trainer
