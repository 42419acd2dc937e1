#include "training/run_checkpoints.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/run_status.hpp"

using namespace trireme;

namespace {

std::atomic<bool> asked_to_stop = false;

void ask_to_stop(int) { asked_to_stop.store(true, std::memory_order_relaxed); }

void listen_for_signals() {
  struct sigaction action {};
  action.sa_handler = ask_to_stop;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
}

// Settings that may change when a run goes on: who computes what, which changes no more than rounding...
constexpr auto of_layout = std::to_array<std::string_view>({"data",
                                                            "device",
                                                            "allow_tf32",
                                                            "bucket_mb",
                                                            "optimizer_sharding",
                                                            "micro_batch_size",
                                                            "fixed_bits",
                                                            "compress",
                                                            "compress_start",
                                                            "compress_warmup",
                                                            "compress_when",
                                                            "compress_between",
                                                            "data_parallel",
                                                            "pipeline_parallel",
                                                            "tensor_parallel",
                                                            "sequence_parallel",
                                                            "schedule",
                                                            "chunks",
                                                            "layer_costs",
                                                            "validation_interval",
                                                            "check_replicas",
                                                            "samples",
                                                            "sample_interval"});
// ...and how the rest is trained, which is worth a line.
constexpr std::array<std::string_view, 14> of_training{
    "steps", "epochs",    "learning_rate", "min_learning_rate_ratio", "warmup",     "weight_decay", "beta1", "beta2",
    "clip",  "precision", "fp8",           "label_smoothing",         "non_finite", "max_skipped"};

constexpr const char* data_content = "data_content";

// What a run trains on, by its settings.
std::string data_of(const checkpoint::Configuration& settings) {
  const auto value = [&](const char* name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string("not there") : found->second;
  };
  return fmt::format("{}: {}", value("data"), value(data_content));
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Nothing: no checkpoint. Rank 0 decides.
std::optional<std::int64_t> step_to_resume(const TrainingOptions& options, const Group& world) {
  std::array<std::int64_t, 1> step{-1};
  const auto look = [&] {
    if (world.rank() != 0) return;
    const char* wish = std::getenv("TRIREME_RESUME");
    const std::string resume = wish != nullptr ? wish : options.resume;
    if (resume == "none") return;
    const auto committed = checkpoint::committed_steps(options.checkpoint_directory);
    if (resume == "auto") {
      if (!committed.empty()) step[0] = committed.back();
      return;
    }
    const auto [end, failure] = std::from_chars(resume.data(), resume.data() + resume.size(), step[0]);
    require(failure == std::errc() && end == resume.data() + resume.size() && step[0] >= 0,
            "--resume {} is neither auto, none nor a step", resume);
    require(std::ranges::find(committed, step[0]) != committed.end(),
            "--resume {}: there is no such checkpoint in {}; there are those of steps [{}]", resume,
            options.checkpoint_directory, fmt::join(committed, ", "));
  };
  world.agree(look, "look for checkpoints");
  world.broadcast(std::span(step), 0, "step to resume").wait_on_host();
  return step[0] < 0 ? std::nullopt : std::optional(step[0]);
}

}  // namespace

RunCheckpoints::RunCheckpoints(const TrainingOptions& options, const Group& world, const optim::Settings& settings)
    : world_(world),
      settings_(settings.begin(), settings.end()),
      program_(options.program),
      allow_other_data_(options.allow_other_data),
      steps_(options.steps),
      interval_(options.checkpoint_interval) {
  require_same(world, "data file", {{data_content, options.data_content}});
  settings_["data"] = options.data;
  if (options.checkpoint_directory.empty()) return;
  checkpoints_.emplace(world, checkpoint::CheckpointOptions{.directory = options.checkpoint_directory, .keep = options.keep});
  checkpoints_->prepare();
  resumed_ = step_to_resume(options, world);
  newest_ = resumed_;
  done_ = first_step();
  listen_for_signals();
}

std::vector<std::string> RunCheckpoints::load(const AddTo& add_to) {
  if (!resumed_) return {};
  State state;
  add_to(state);
  const auto loaded = checkpoints_->load(*resumed_, state);
  if (loaded.imported) {
    return {fmt::format("begins with the weights of {} and fresh optimizer state: the checkpoint was imported",
                        loaded.imported->source)};
  }
  std::vector<std::string> notes{fmt::format("resumed after step {}", loaded.step)};
  for (const auto& [name, value] : settings_) {
    const auto before = loaded.configuration.find(name);
    const std::string had = before == loaded.configuration.end() ? "not there" : before->second;
    if (had == value || contains(of_layout, name)) continue;
    if (name == data_content) {
      const std::string wanted = data_of(settings_);
      const std::string found = data_of(loaded.configuration);
      if (!allow_other_data_) {
        throw Error({.code = ErrorCode::invalid_argument,
                     .message = fmt::format("the checkpoint of step {} was made with other data", loaded.step),
                     .name = "data",
                     .wanted = wanted,
                     .had = found,
                     .hint = "give the run the checkpoint's data, or --allow-other-data to go on with these"});
      }
      notes.push_back(fmt::format("note: the data were {} in the checkpoint, are {} now", found, wanted));
      continue;
    }
    if (!contains(of_training, name)) {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("the checkpoint of step {} was made with another {}", loaded.step, name),
                   .name = name,
                   .wanted = value,
                   .had = had,
                   .hint =
                       "give the run the checkpoint's options, or another --checkpoint-dir; for weights alone, trireme-ckpt "
                       "export FOLDER FILE writes a file for --init"});
    }
    notes.push_back(fmt::format("note: {} was {} in the checkpoint, is {} now", name, had, value));
  }
  return notes;
}

StepRequests RunCheckpoints::requests() const {
  if (!checkpoints_) return {};
  const auto since = std::chrono::steady_clock::now() - last_save_;
  return {.stop = asked_to_stop.load(std::memory_order_relaxed),
          .checkpoint = world_.rank() == 0 && interval_.seconds > 0 && since >= std::chrono::seconds(interval_.seconds)};
}

bool RunCheckpoints::due(std::int64_t done, const StepRequests& agreed) const {
  return agreed.stop || agreed.checkpoint || done == steps_ || (interval_.steps > 0 && done % interval_.steps == 0);
}

RunCheckpoints::AfterStep RunCheckpoints::after_step(std::int64_t done, const StepRequests& agreed, const AddTo& add_to) {
  AfterStep result{.stop = checkpoints_ && agreed.stop, .notes = {}};
  done_ = done;
  if (done == first_step() + 1) report(RunState::training);
  if (!checkpoints_) return result;
  const bool last = result.stop || done == steps_;
  try {
    committed(checkpoints_->poll(), result.notes);
    if (due(done, agreed)) save(done, last, add_to, result.notes);
  } catch (const Error& error) {
    // The disk failed, on all ranks alike: training goes on, unless this was the last chance.
    if (last || error.code() != ErrorCode::io) throw;
    result.notes.push_back(fmt::format("note: no checkpoint was saved: {}", error.what()));
  }
  if (result.stop) {
    result.notes.push_back(fmt::format("stopped on a signal after step {}, which is saved", done));
    report(RunState::stopped);
  }
  return result;
}

void RunCheckpoints::save(std::int64_t done, bool wait, const AddTo& add_to, std::vector<std::string>& notes) {
  last_save_ = std::chrono::steady_clock::now();
  committed(checkpoints_->finish(), notes);
  State state;
  add_to(state);
  checkpoint::Configuration configuration = settings_;
  configuration["program"] = program_;
  configuration["loss"] = loss_;
  checkpoints_->save(done, state, configuration);
  if (wait) committed(checkpoints_->finish(), notes);
}

void RunCheckpoints::committed(std::optional<std::int64_t> step, std::vector<std::string>& notes) {
  if (!step) return;
  newest_ = step;
  notes.push_back(fmt::format("checkpoint of step {} saved", *step));
  report(RunState::training);
}

void RunCheckpoints::report(RunState state) const {
  if (world_.rank() != 0) return;
  RunStatus status{.state = state, .step = static_cast<std::uint64_t>(done_)};
  if (newest_) status.checkpoint = static_cast<std::uint64_t>(*newest_);
  report_run_status(status);
}
