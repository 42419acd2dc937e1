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

// How far a training run is, for what supervises it.
struct RunStatus {
  RunState state = RunState::training;
  std::uint64_t step = 0;                                  // steps done
  std::optional<std::uint64_t> checkpoint = std::nullopt;  // step of the last committed checkpoint

  bool operator==(const RunStatus&) const = default;
};

// One JSON object; the file always holds all of an old status or of the new one. Throws Error{io}.
void write_run_status(const Location& location, const RunStatus& status);

// Nothing while there is no file. Throws Error{corrupt_file} for another content.
std::optional<RunStatus> read_run_status(const Location& location);

// For rank 0 of a training program, after its first step, after each committed checkpoint and at its end: writes the file that
// TRIREME_RUN_STATUS names, where trireme-run has set it. Training goes on without: a failure is only told in the log.
void report_run_status(const RunStatus& status);

}  // namespace trireme
