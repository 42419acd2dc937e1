#pragma once

#include <chrono>
#include <functional>

#include "comm/base/rank_context.hpp"
#include "comm/mpi/mpi_alarm.hpp"

namespace trireme::comm {

// A launch in a program under MPI. If the program has not initialised MPI itself, the first launch does, and MPI is finalized
// when the process exits, so that the program may launch again; after a failed job it is finalized at once.
class MpiSession {
 public:
  explicit MpiSession(std::chrono::milliseconds deadline);  // of the wait for other ranks at a later launch

  // Waits until the other ranks have left too, so that a failure reaches all exit codes. After a failure it ends the job if
  // ranks do not leave in time. Returns this process's exit code. Meanwhile it calls look() repeatedly, to notice ranks of
  // other nodes that die.
  int finish(RankContext& context, MpiAlarm& alarm, int code, const std::function<void()>& look);
};

}  // namespace trireme::comm
