#include "trireme/core/exit_code.hpp"

namespace trireme {

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::io:
    case ErrorCode::corrupt_file:
    case ErrorCode::not_available:
    case ErrorCode::rank_mismatch: return ExitCode::configuration;
    case ErrorCode::timeout: return ExitCode::timeout;
    case ErrorCode::out_of_memory: return ExitCode::out_of_memory;
    case ErrorCode::diverged: return ExitCode::diverged;
    case ErrorCode::peer_failed:
    case ErrorCode::internal: return ExitCode::failure;
  }
  return ExitCode::failure;
}

}  // namespace trireme
