#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/settings.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/checkpoint/claim.hpp"
#include "trireme/core/state.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/files/location.hpp"
#include "trireme/files/run_status.hpp"
#include "trireme/trainer/options.hpp"
#include "trireme/trainer/run.hpp"

namespace trireme::trainer {

// A step that has ended.
struct StepEnd {
  std::int64_t done = 0;  // finished steps, including this one
  double seconds = 0;     // of the run's loop, over all starts
  std::string loss = {};  // as text
  bool save = false;      // a checkpoint is due, or was asked for
  bool last = false;      // the last step of this start
};

// The checkpoints of a run. Without a directory in the options none are saved or loaded.
class RunCheckpoints {
 public:
  using AddTo = std::function<void(State&)>;

  // Finds the checkpoint to resume from. Collective.
  RunCheckpoints(const Group& world, const Options& options);

  bool on() const { return checkpoints_.has_value(); }
  std::optional<std::int64_t> resumed() const { return resumed_; }

  const checkpoint::Configuration& settings() const { return settings_; }
  void describe(const std::string& name, const std::string& value, const OwnSetting& own);

  // Sets what the run reads. If the checkpoint is loaded already, compares it at once. Returns lines to print. Collective.
  std::vector<std::string> describe_data(const std::string& name, const std::string& value, Differs other);

  // Claims the directory for a run that trains, before it loads, and removes incomplete checkpoints of earlier starts. Throws
  // if another job saves there, or has saved since the constructor looked. Collective.
  void prepare();

  // Records the start of the run, once it can no longer be refused. Collective.
  void record(const Options& options) const;

  // Fills the state from the checkpoint that was found. `whole`: the run trains and loads everything that the checkpoint holds.
  // For a run that only evaluates, just the settings of its program are compared. Returns lines to print.
  std::vector<std::string> load(const AddTo& add_to, bool whole);

  // Seconds in the run's loop during earlier starts; known once the checkpoint is loaded.
  double seconds_before() const { return seconds_before_; }

  // Whether a checkpoint is due by the clock; always false on ranks other than 0.
  bool is_time() const;

  // Saves a checkpoint if step.save or step.last; in the latter case waits until it is committed. Returns lines to print.
  // Collective.
  std::vector<std::string> after_step(const StepEnd& step, const AddTo& add_to);

  void report(RunState state) const;  // to the supervisor of the job

 private:
  checkpoint::Configuration own_settings() const;
  std::vector<std::string> about_later() const;
  checkpoint::LoadedCheckpoint load_state(const State& state, bool whole, const std::vector<std::string>& notes);
  void save(const StepEnd& step, const AddTo& add_to, std::vector<std::string>& notes);
  void committed(std::optional<std::int64_t> step, std::vector<std::string>& notes);

  Group world_;
  std::optional<checkpoint::Claim> claim_;  // declared first, so that it outlives a save under way
  std::optional<checkpoint::Checkpoints> checkpoints_;
  Location directory_;
  std::shared_ptr<FileSystem> files_;
  checkpoint::Configuration settings_;
  std::map<std::string, OwnSetting> own_;  // of the program and its data
  std::optional<checkpoint::Configuration> loaded_;
  Amount every_;
  std::vector<std::int64_t> found_;  // the committed steps that rank 0 found in the constructor
  std::optional<std::int64_t> resumed_;
  std::optional<std::int64_t> newest_;  // the newest committed step
  std::int64_t done_ = 0;
  double seconds_before_ = 0;
  Stopwatch since_last_save_;
};

}  // namespace trireme::trainer
