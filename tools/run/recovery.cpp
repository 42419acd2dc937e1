#include "recovery.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace {

constexpr int failures_before_going_back = 2;
constexpr std::chrono::seconds longest_pause{300};  // a machine that reboots needs minutes

// No pause before the first restart, then 1 s, 2 s, 4 s ...
std::chrono::seconds pause_before(int restart) {
  if (restart == 0) return std::chrono::seconds(0);
  return std::min(std::chrono::seconds(1) * (1 << std::min(restart - 1, 10)), longest_pause);
}

}  // namespace

Recovery::Recovery(int restarts, std::span<const std::uint64_t> checkpoints) : most_restarts_(restarts) {
  note_progress(checkpoints);
}

// A checkpoint of a step that the run had already reached is no progress: the run has gone back in between.
void Recovery::note_progress(std::span<const std::uint64_t> checkpoints) {
  if (checkpoints.empty() || (furthest_ && checkpoints.back() <= *furthest_)) return;
  furthest_ = checkpoints.back();
  restarts_ = 0;
  failures_ = 0;
  went_back_ = false;
}

Decision Recovery::after(Cause cause, std::span<const std::uint64_t> checkpoints, bool begun) {
  switch (cause) {
    case Cause::finished: return {.reason = "the job has finished"};
    case Cause::stopped: return {.reason = "the job was asked to stop"};
    case Cause::configuration: return {.reason = "a configuration error is there again after a restart: repair it first"};
    default: break;
  }
  note_progress(checkpoints);
  if (cause == Cause::diverged && checkpoints.empty())
    return {.reason = "it diverged, and there is no checkpoint: from the start it would come to the same again"};
  const bool own_doing = begun && cause != Cause::killed && cause != Cause::launch;
  if (own_doing) ++failures_;
  const bool goes_back = own_doing && (failures_ >= failures_before_going_back || cause == Cause::diverged);
  if (goes_back && went_back_) return {.reason = fmt::format("{} failures without a new checkpoint between them", failures_)};
  if (restarts_ >= most_restarts_)
    return {.reason = fmt::format("no new checkpoint after {} restart{}", restarts_, restarts_ == 1 ? "" : "s")};

  Decision decision{.restart = true, .pause = pause_before(restarts_)};
  decision.number = ++restarts_;
  went_back_ = went_back_ || goes_back;
  if (checkpoints.empty()) {
    decision.reason = "there is no checkpoint: from the start";
  } else if (!went_back_) {
    decision.resume = fmt::format("{}", checkpoints.back());
    decision.reason = fmt::format("from the last checkpoint, step {}", checkpoints.back());
  } else if (checkpoints.size() == 1) {
    decision.resume = "none";
    decision.reason = fmt::format("back from the only checkpoint, step {}, to the start", checkpoints.back());
  } else {
    const std::uint64_t step = checkpoints[checkpoints.size() - 2];
    decision.resume = fmt::format("{}", step);
    decision.reason = fmt::format("back from the last checkpoint, step {}, to that of step {}", checkpoints.back(), step);
  }
  return decision;
}
