#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// How a program tells the shell, and what supervises it, why it ended.
enum class ExitCode : int {
  success = 0,        // finished, or saved and stopped on a signal
  failure = 1,        // anything else
  configuration = 2,  // options, files, ranks that disagree: the same again would fail again
  timeout = 3,        // a deadline passed
  out_of_memory = 4,
  diverged = 5,  // loss or gradients were not finite, or replicas came to differ: go back to a checkpoint
};

ExitCode exit_code_of(ErrorCode code);

}  // namespace trireme
