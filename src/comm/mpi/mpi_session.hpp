#pragma once

#include "comm/base/rank_context.hpp"
#include "comm/mpi/mpi_alarm.hpp"

namespace trireme::comm {

// MPI from initialisation to the end, unless the program has initialised it itself.
class MpiSession {
 public:
  MpiSession();

  // Waits until the other ranks have left too, so that a failure reaches all exit codes; after a failure, ranks
  // that don't leave in time are ended with the job. Returns this process's exit code.
  int finish(RankContext& context, MpiAlarm& alarm, int code);

 private:
  bool owner_ = false;  // this session initialised MPI and finalises it
};

}  // namespace trireme::comm
