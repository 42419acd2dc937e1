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
  std::int64_t done = 0;  // with it
  double seconds = 0;     // of the run's loop, over all starts
  std::string loss = {};  // in words
  bool save = false;      // a checkpoint is due, or was asked for
  bool last = false;      // of this start
};

// The checkpoints of a run, as its options ask for them; without a directory there are none.
class RunCheckpoints {
 public:
  using AddTo = std::function<void(State&)>;

  // Collective. Finds the checkpoint to go on from.
  RunCheckpoints(const Group& world, const Options& options);

  bool on() const { return checkpoints_.has_value(); }
  std::optional<std::int64_t> resumed() const { return resumed_; }

  const checkpoint::Configuration& settings() const { return settings_; }
  void describe(const std::string& name, const std::string& value, const OwnSetting& own);

  // What the run reads. Where the checkpoint is loaded already it is compared at once. Gives what there is to tell. Collective.
  std::vector<std::string> describe_data(const std::string& name, const std::string& value, Differs other);

  // Collective, before a run that trains loads: claims the directory, and removes what earlier starts of this job have left
  // half done. An Error where another job saves there, or has saved since this run looked.
  void prepare();

  // Collective, once nothing is left that could refuse this start.
  void record(const Options& options) const;

  // Fills the state from the checkpoint that was found. `whole`: the run trains, and has all that the checkpoint holds; one
  // that only evaluates is asked for no settings but those of its program.
  std::vector<std::string> load(const AddTo& add_to, bool whole);

  // Of the run's loop, in the starts before; once the checkpoint is loaded.
  double seconds_before() const { return seconds_before_; }

  // Whether the time for the next one has come; only rank 0 knows.
  bool is_time() const;

  // Collective. Saves where `save` says so, and at the end; there it waits until the checkpoint is committed. Gives what there
  // is to tell.
  std::vector<std::string> after_step(const StepEnd& step, const AddTo& add_to);

  void report(RunState state) const;  // to what supervises the job

 private:
  checkpoint::Configuration own_settings() const;
  std::vector<std::string> about_later() const;
  checkpoint::LoadedCheckpoint load_state(const State& state, bool whole, const std::vector<std::string>& notes);
  void save(const StepEnd& step, const AddTo& add_to, std::vector<std::string>& notes);
  void committed(std::optional<std::int64_t> step, std::vector<std::string>& notes);

  Group world_;
  std::optional<checkpoint::Claim> claim_;  // outlives what is being saved
  std::optional<checkpoint::Checkpoints> checkpoints_;
  Location directory_;
  std::shared_ptr<FileSystem> files_;
  checkpoint::Configuration settings_;
  std::map<std::string, OwnSetting> own_;  // of the program and its data
  std::optional<checkpoint::Configuration> loaded_;
  Amount every_;
  std::vector<std::int64_t> found_;  // committed when this run looked; of rank 0
  std::optional<std::int64_t> resumed_;
  std::optional<std::int64_t> newest_;  // committed
  std::int64_t done_ = 0;
  double seconds_before_ = 0;
  Stopwatch since_last_save_;
};

}  // namespace trireme::trainer
