#pragma once

#include <cstdint>
#include <optional>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {

enum class RunState : std::uint8_t {
  training,
  finished,
  stopped,  // on a signal, after a checkpoint was saved
};

// The progress of a training run, for its supervisor.
struct RunStatus {
  RunState state = RunState::training;
  std::uint64_t step = 0;                                  // completed steps
  std::optional<std::uint64_t> checkpoint = std::nullopt;  // step of the last committed checkpoint

  bool operator==(const RunStatus&) const = default;
};

// Writes a JSON object; replaces the file atomically. Throws Error{io}.
void write_run_status(const Location& location, const RunStatus& status);

// Returns std::nullopt if there is no file. Throws Error{corrupt_file} if the file has other content.
std::optional<RunStatus> read_run_status(const Location& location);

// Writes the file that the environment variable TRIREME_RUN_STATUS names; trireme-run sets the variable. Call it on rank 0 of a
// training program after the first step, after each committed checkpoint and at the end. It does not throw: failures go to the
// log.
void report_run_status(const RunStatus& status);

}  // namespace trireme
