#include "trainer/run_checkpoints.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>

#include "trainer/run_record.hpp"
#include "trainer/settings.hpp"
#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"

namespace trireme::trainer {

namespace {

// Entries of a checkpoint's configuration that are not settings.
constexpr const char* loss_of_step = "loss_of_step";
constexpr const char* seconds_of_run = "seconds_of_run";

// Older checkpoints lack this entry.
double seconds_of(const checkpoint::Configuration& configuration) {
  const auto found = configuration.find(seconds_of_run);
  const auto seconds = found == configuration.end() ? std::nullopt : parse_number<double>(found->second);
  return std::max(0.0, seconds.value_or(0));
}

// The step of the checkpoint to resume from; none if the run starts from the beginning. Rank 0 looks for it and broadcasts it.
// `found`: all steps that rank 0 found.
std::optional<std::int64_t> step_to_resume(const Group& world, const Options& options, std::vector<std::int64_t>& found) {
  std::array<std::int64_t, 1> step{-1};
  const auto look = [&] {
    if (world.rank() != 0) return;
    const char* wish = std::getenv("TRIREME_RESUME");
    const std::string resume = wish != nullptr ? wish : options.resume;
    const std::string said = fmt::format("{} {}", wish != nullptr ? "TRIREME_RESUME" : "resume", resume);
    const Location& directory = options.checkpoints.directory;
    const auto files = file_system_of(options.checkpoints);
    found = checkpoint::committed_steps(directory, *files);
    if (resume == "none") return;
    if (resume == "auto") {
      if (!found.empty()) step[0] = found.back();
      return;
    }
    step[0] = parse_number<std::int64_t>(resume).value_or(-1);
    require(step[0] >= 0, "{}: this is neither auto, none nor a step", said);
    require(std::ranges::find(found, step[0]) != found.end(),
            "{}: there is no such checkpoint in {}; there are those of steps [{}]", said, directory.string(),
            fmt::join(found, ", "));
  };
  world.agree(look, "look for checkpoints");
  world.broadcast(std::span(step), 0, "step to resume").wait_on_host();
  return step[0] < 0 ? std::nullopt : std::optional(step[0]);
}

}  // namespace

RunCheckpoints::RunCheckpoints(const Group& world, const Options& options)
    : world_(world),
      directory_(options.checkpoints.directory),
      files_(file_system_of(options.checkpoints)),
      every_(options.checkpoint_every) {
  for (const auto& [name, value] : settings_of(options)) settings_[name] = value;
  require(!directory_.empty() || options.resume == "auto" || options.resume == "none",
          "resume {} needs the directory of the checkpoints", options.resume);
  if (directory_.empty()) return;
  checkpoints_.emplace(world, options.checkpoints);
  resumed_ = step_to_resume(world, options, found_);
  newest_ = resumed_;
  done_ = resumed_.value_or(0);
}

void RunCheckpoints::prepare() {
  if (!checkpoints_ || claim_) return;
  claim_.emplace(world_, directory_, files_);
  const auto look_again = [&] {
    if (world_.rank() != 0) return;
    const auto committed = checkpoint::committed_steps(directory_, *files_);
    if (committed.empty() || (!found_.empty() && found_.back() == committed.back())) return;
    throw Error({.code = ErrorCode::io,  // starting again finds them
                 .message = "another job has saved checkpoints there since this one looked for the newest",
                 .path = directory_.string(),
                 .hint = "start it once more"});
  };
  world_.agree(look_again, "look for checkpoints");
  checkpoints_->prepare(settings_);
}

void RunCheckpoints::record(const Options& options) const {
  if (!claim_) return;
  const auto write = [&] {
    if (world_.rank() != 0) return;
    const RunStart start{.command = options.command,
                         .configuration = options.configuration,
                         .ranks = world_.size(),
                         .first_step = done_,
                         .settings = settings_};
    record_start(start, directory_, *files_);
  };
  world_.agree(write, "record the start of a run");
}

void RunCheckpoints::describe(const std::string& name, const std::string& value, const OwnSetting& own) {
  require(!settings_.contains(name) && name != loss_of_step && name != seconds_of_run,
          "a setting \"{}\" is described twice, or is one of every run: give it another name", name);
  settings_[name] = value;
  own_[name] = own;
}

// A checkpoint that lacks such an entry accepts any data.
std::vector<std::string> RunCheckpoints::describe_data(const std::string& name, const std::string& value, Differs other) {
  settings_[name] = value;
  own_[name] = {.rule = {.differs = other, .absent = value}, .of_data = true};
  std::vector<std::string> notes;
  const auto compare_it = [&] {
    if (loaded_) notes = compare(*loaded_, {{name, value}}, own_, *resumed_);
  };
  world_.agree(compare_it, "compare data with those of the checkpoint");
  return notes;
}

// Compares the settings first, since a missing tensor would not show that they differ.
std::vector<std::string> RunCheckpoints::load(const AddTo& add_to, bool whole) {
  if (!resumed_) return whole ? about_later() : std::vector<std::string>();
  std::vector<std::string> notes;
  world_.agree(
      [&] {
        const checkpoint::CheckpointReader reader(checkpoint::checkpoint_folder(directory_, *resumed_, *files_), files_);
        seconds_before_ = seconds_of(reader.manifest().configuration);
        if (reader.manifest().imported) return;
        notes = compare(reader.manifest().configuration, whole ? settings_ : own_settings(), own_, *resumed_);
        if (whole) loaded_ = reader.manifest().configuration;
      },
      "compare settings with those of the checkpoint");
  State state;
  add_to(state);
  const auto loaded = load_state(state, whole, notes);
  if (loaded.imported) {
    return {fmt::format("begins with the weights of {} and fresh optimizer state: the checkpoint was imported",
                        loaded.imported->source)};
  }
  notes.insert(notes.begin(), fmt::format("resumed after step {}", loaded.step));
  if (whole) std::ranges::copy(about_later(), std::back_inserter(notes));
  return notes;
}

// A note about checkpoints that are later than the resumed one. On rank 0.
std::vector<std::string> RunCheckpoints::about_later() const {
  std::vector<std::int64_t> later = found_;
  std::erase_if(later, [this](std::int64_t step) { return step <= resumed_.value_or(-1); });
  if (later.empty()) return {};
  return {
      fmt::format("note: the later checkpoints, of steps [{}], are put aside as left-step-... when this run saves its first",
                  fmt::join(later, ", "))};
}

// The program's settings without those of the data, since an evaluation may read other data.
checkpoint::Configuration RunCheckpoints::own_settings() const {
  checkpoint::Configuration own;
  for (const auto& [name, setting] : own_) {
    if (!setting.of_data) own[name] = settings_.at(name);
  }
  return own;
}

// If the checkpoint does not fit, adds the differing settings to the error, since they may be the cause.
checkpoint::LoadedCheckpoint RunCheckpoints::load_state(const State& state, bool whole, const std::vector<std::string>& notes) {
  try {
    return checkpoints_->load(*resumed_, state, {.whole = whole});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument || notes.empty()) throw;
    ErrorFields fields = error.fields();
    fields.message += fmt::format(" ({})", fmt::join(notes, "; "));
    throw Error(std::move(fields));
  }
}

bool RunCheckpoints::is_time() const {
  const auto* seconds = std::get_if<Seconds>(&every_);
  if (!checkpoints_ || world_.rank() != 0 || seconds == nullptr) return false;
  return since_last_save_.seconds() >= seconds->count;
}

std::vector<std::string> RunCheckpoints::after_step(const StepEnd& step, const AddTo& add_to) {
  std::vector<std::string> notes;
  const bool first = done_ == resumed_.value_or(0);
  done_ = step.done;
  if (first) report(RunState::training);
  if (!claim_) return notes;                        // no model is trained, or there are no checkpoints
  const auto tell = [&notes](const Error& error) {  // the disk failed, as all ranks know: training goes on
    if (error.code() != ErrorCode::io) throw;
    notes.push_back(fmt::format("note: no checkpoint was saved: {}", error.what()));
  };
  const bool saves = step.save || step.last;
  try {
    committed(saves ? checkpoints_->finish() : checkpoints_->poll(), notes);
  } catch (const Error& error) {
    tell(error);
  }
  try {
    if (saves) save(step, add_to, notes);
  } catch (const Error& error) {
    if (step.last) throw;
    tell(error);
  }
  return notes;
}

void RunCheckpoints::save(const StepEnd& step, const AddTo& add_to, std::vector<std::string>& notes) {
  since_last_save_.restart();
  claim_->require_held();
  State state;
  add_to(state);
  checkpoint::Configuration configuration = settings_;
  configuration[loss_of_step] = step.loss;
  configuration[seconds_of_run] = fmt::format("{}", step.seconds);
  checkpoints_->save(step.done, state, configuration);
  if (step.last) committed(checkpoints_->finish(), notes);
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

}  // namespace trireme::trainer
