#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cause.hpp"

// What to do after a job has ended.
struct Decision {
  bool restart = false;
  int number = 0;           // of the restart, counted from the last new checkpoint
  std::string resume = {};  // TRIREME_RESUME for the next start; empty: not set, the command decides
  std::chrono::seconds pause{0};
  std::string reason = {};
};

// Decides after each end of a job whether to restart it, and from which checkpoint. Failures that the job caused itself count
// as the same failure while there is no new checkpoint: the second one goes back one checkpoint, the third one stops. A run
// that diverged goes back at once, and stops if there is no checkpoint, since it would diverge again. A failure before the
// first step says nothing about the checkpoint: the job restarts from the same one, after a pause that grows each time.
class Recovery {
 public:
  // `restarts`: at most so many in a row without a new checkpoint.
  Recovery(int restarts, std::span<const std::uint64_t> checkpoints);

  // `checkpoints`: the steps of the checkpoints that this run may resume from, in ascending order. `begun`: this start has done
  // a step.
  Decision after(Cause cause, std::span<const std::uint64_t> checkpoints, bool begun = true);

 private:
  void note_progress(std::span<const std::uint64_t> checkpoints);

  int most_restarts_;
  int restarts_ = 0;        // since the last new checkpoint
  int failures_ = 0;        // since the last new checkpoint
  bool went_back_ = false;  // since the last new checkpoint
  std::optional<std::uint64_t> furthest_;
};
