#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "training/options.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/run_status.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/optim/optimizer.hpp"

// The checkpoints of a run, as its options ask for them; without --checkpoint-dir there are none. From its construction on
// SIGTERM and SIGUSR1 ask all ranks to save and stop after the step.
class RunCheckpoints {
 public:
  using AddTo = std::function<void(trireme::State&)>;

  // Collective, once the data are read: they are the same on all ranks, or it is an error. `settings`: what the run was told,
  // kept with each checkpoint.
  RunCheckpoints(const TrainingOptions& options, const trireme::Group& world, const trireme::optim::Settings& settings);

  std::int64_t first_step() const { return resumed_.value_or(0); }  // that this run trains

  // Fills the state where the run goes on from a checkpoint. An error where the data or a setting that decides what is learnt
  // differ; lines about others that do.
  std::vector<std::string> load(const AddTo& add_to);

  void note_loss(std::string loss) { loss_ = std::move(loss); }  // of the last step, for those who look into a checkpoint

  // What this rank asks of all, for the summary of a step.
  trireme::StepRequests requests() const;

  struct AfterStep {
    bool stop = false;               // the state is saved: end the run
    std::vector<std::string> notes;  // what to tell
  };
  // Collective; `done` steps are done, and `agreed` is what the ranks asked for.
  AfterStep after_step(std::int64_t done, const trireme::StepRequests& agreed, const AddTo& add_to);

  void finished() const { report(trireme::RunState::finished); }  // all steps are done and saved

 private:
  bool due(std::int64_t done, const trireme::StepRequests& agreed) const;
  void save(std::int64_t done, bool wait, const AddTo& add_to, std::vector<std::string>& notes);
  void committed(std::optional<std::int64_t> step, std::vector<std::string>& notes);
  void report(trireme::RunState state) const;

  trireme::Group world_;
  std::optional<trireme::checkpoint::Checkpoints> checkpoints_;
  trireme::checkpoint::Configuration settings_;
  std::string program_;
  std::string loss_;
  bool allow_other_data_;
  std::int64_t steps_;
  CheckpointInterval interval_;
  std::optional<std::int64_t> resumed_;
  std::optional<std::int64_t> newest_;  // committed
  std::int64_t done_ = 0;
  std::chrono::steady_clock::time_point last_save_ = std::chrono::steady_clock::now();
};
