#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "checkpoint_folder.hpp"
#include "command.hpp"
#include "descriptor.hpp"
#include "guardian.hpp"
#include "job.hpp"
#include "job_environment.hpp"
#include "last_lines.hpp"
#include "recovery.hpp"
#include "report.hpp"

struct SupervisorOptions {
  Command command;
  std::filesystem::path checkpoints;  // empty: --checkpoint-dir of the command, if it has one
  int restarts = 10;                  // at most so many in a row without a new checkpoint
  std::chrono::seconds grace{30};     // time for the job to save when it is asked to stop
  std::optional<int> preempted_code;  // exit code if the job was asked to stop; nothing: the job's own exit code
  std::filesystem::path report;       // empty: none
  InheritedSignals signals;           // those of trireme-run, for the job
};

// Runs the job until it has finished, was asked to stop, or must not be restarted.
class Supervisor {
 public:
  Supervisor(SupervisorOptions options,
             Descriptor signals);  // `signals`: from watch(), for the signals that ask the job to stop
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  int run();  // returns the exit code

 private:
  Attempt start(const std::string& resume);
  Ending watch(Guardian& guardian, LastLines& messages);
  void take_signals(Guardian* guardian);
  void pass_on_messages(const Guardian& guardian, LastLines& messages);
  std::optional<Job> recorded_since(double start) const;
  const std::vector<std::uint64_t>& committed();
  std::filesystem::path status_file() const { return scratch_ / "status.json"; }
  std::optional<trireme::RunStatus> reported() const;
  bool wait(std::chrono::seconds pause);  // false: a signal asked to stop
  Launch launch_for(const std::string& resume) const;
  int conclude(const Decision& decision);

  SupervisorOptions options_;
  CheckpointFolder checkpoints_;
  std::vector<std::uint64_t> committed_;  // steps, as last read successfully
  Environment identity_ = job_identity();
  Recovery recovery_;
  Descriptor signals_;
  std::filesystem::path scratch_;  // for the job's status
  std::filesystem::path flight_;
  bool own_flight_ = false;
  bool asked_ = false;   // the job was asked to stop
  bool forced_ = false;  // the job did not stop in this start, and was ended
  int interrupts_ = 0;   // number of SIGINTs
  std::vector<Attempt> attempts_;
};
