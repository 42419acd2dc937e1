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
  std::vector<std::pair<std::string, std::string>> environment;  // what is set beside this process's
  std::string mark = {};                                         // NAME=VALUE of it that no process of another job has
  InheritedSignals signals = {};                                 // of trireme-run
  std::vector<std::filesystem::path> scratch;                    // goes away if trireme-run dies
  std::chrono::milliseconds patience{10'000};  // with a launcher whose ranks have ended, and with a job that nobody supervises
};

struct Ending {
  std::optional<int> status = std::nullopt;  // of the launcher, as waitpid has it; nothing: the guardian itself was killed
  int start_error = 0;                       // errno of a command that could not be started
  bool stuck = false;                        // the launcher went on after its ranks had ended, and was killed
  bool had_ranks = false;                    // some were seen on this machine
};

// The parent of a job's launcher: a process of its own, in a session of its own. It adopts what the launcher leaves behind, so
// that it can end every process of the job: when the launcher ends, however it does, and when trireme-run dies.
class Guardian {
 public:
  explicit Guardian(const Launch& job);
  ~Guardian();  // ends the job
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  int messages() const { return messages_.get(); }  // what the job writes to stderr
  int ended() const { return ending_.get(); }       // readable when no process of the job is left

  enum class Order : char {
    stop = 's',       // save and end: SIGUSR1, which mpirun and srun hand to every rank
    terminate = 't',  // SIGTERM to the launcher
    kill = 'k',
  };
  void order(Order order);
  Ending wait();  // until no process of the job is left

 private:
  bool owns(const LivingProcess& process) const;

  pid_t process_ = -1;
  pid_t session_ = -1;  // of the job's processes, unless they began another
  std::string mark_;
  Descriptor orders_;
  Descriptor ending_;
  Descriptor messages_;
};
