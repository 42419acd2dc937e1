#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "descriptor.hpp"
#include "inherited_signals.hpp"
#include "processes.hpp"

struct Launch {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // set in addition to the environment of this process
  std::string mark = {};                       // NAME=VALUE of `environment` that only processes of this job have
  InheritedSignals signals = {};               // of trireme-run
  std::vector<std::filesystem::path> scratch;  // removed if trireme-run dies
  // How long a launcher may go on after its ranks have ended. Also limits the end of a job whose trireme-run has died.
  std::chrono::milliseconds patience{10'000};
};

struct Ending {
  std::optional<int> status = std::nullopt;  // of the launcher, as from waitpid(); nothing: the guardian was killed
  int start_error = 0;                       // errno if the command could not be started
  bool stuck = false;                        // the launcher went on after its ranks had ended, and was killed
  bool had_ranks = false;                    // ranks were seen on this machine
};

// The parent process of a job's launcher, in its own session. It adopts the processes that the launcher leaves behind. So it
// can end every process of the job when the launcher ends for any reason, or when trireme-run dies.
class Guardian {
 public:
  explicit Guardian(const Launch& job);
  ~Guardian();  // ends the job
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  int messages() const { return messages_.get(); }  // the stderr of the job
  int ended() const { return ending_.get(); }       // becomes readable when no process of the job is left

  enum class Order : char {
    stop = 's',       // SIGUSR1 to the launcher: save and end; mpirun and srun pass it to every rank
    terminate = 't',  // SIGTERM to the launcher
    kill = 'k',
  };
  void order(Order order);
  Ending wait();  // waits until no process of the job is left

 private:
  bool owns(const LivingProcess& process) const;

  pid_t process_ = -1;
  pid_t session_ = -1;  // of the job's processes, except those that started another one
  std::string mark_;
  Descriptor orders_;
  Descriptor ending_;
  Descriptor messages_;
};
