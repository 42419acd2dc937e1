#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cause.hpp"

// What to do when a job has ended.
struct Decision {
  bool restart = false;
  int number = 0;           // of the restart, since the last new checkpoint
  std::string resume = {};  // TRIREME_RESUME of the next start; empty: what the command says itself
  std::chrono::seconds pause{0};
  std::string reason = {};
};

// Decides after each end of a job whether and from where it starts again. A failure of the job's own doing without a new
// checkpoint since the one before is taken for the same: the second goes back one checkpoint, the third stops. A run that
// diverged goes back at once, and stops where there is nothing to go back from: it would come to the same again. What ended a
// start before its first step says nothing of a checkpoint: the job waits, longer each time, and starts from the same one.
class Recovery {
 public:
  // At most `restarts` in a row without a new checkpoint.
  Recovery(int restarts, std::span<const std::uint64_t> checkpoints);

  // `checkpoints`: the steps of those that this run may resume from, in ascending order. `begun`: this start has done a step.
  Decision after(Cause cause, std::span<const std::uint64_t> checkpoints, bool begun = true);

 private:
  void note_progress(std::span<const std::uint64_t> checkpoints);

  int most_restarts_;
  int restarts_ = 0;        // since the last progress
  int failures_ = 0;        // likewise
  bool went_back_ = false;  // likewise
  std::optional<std::uint64_t> furthest_;
};
