#pragma once

#include <chrono>
#include <functional>

#include "comm/base/rank_context.hpp"
#include "comm/mpi/mpi_alarm.hpp"

namespace trireme::comm {

// A launch in a program under MPI. Where the program has not initialised MPI itself, the first launch does, and MPI ends with
// the process, so that it may launch again; after a failed job it ends at once.
class MpiSession {
 public:
  explicit MpiSession(std::chrono::milliseconds deadline);  // for the other ranks to come to a later launch

  // Waits until the other ranks have left too, so that a failure reaches all exit codes; after a failure, ranks
  // that don't leave in time are ended with the job. Returns this process's exit code.
  // `look` is called again and again meanwhile, for ranks of other nodes that die.
  int finish(RankContext& context, MpiAlarm& alarm, int code, const std::function<void()>& look);
};

}  // namespace trireme::comm
