#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Exit codes of programs, for the shell and for supervisors.
enum class ExitCode : int {
  success = 0,        // finished, or saved and stopped on a signal
  failure = 1,        // any other error
  configuration = 2,  // wrong options or files, or ranks that disagree: a restart would fail too
  timeout = 3,        // a deadline passed
  out_of_memory = 4,
  diverged = 5,  // loss or gradients were not finite, or replicas differ: go back to a checkpoint
};

ExitCode exit_code_of(ErrorCode code);

}  // namespace trireme
