#pragma once

#include <cstdint>
#include <string_view>

namespace trireme::trainer {

// Where a run is. `updated` is also the body of a step in a run without a model, which has nothing to update.
enum class Phase : std::uint8_t { preparing, loaded, between_steps, in_step, finished, updated, ended };

// Calls that have a place of their own in a run.
enum class RunCall : std::uint8_t { add, keep, describe, describe_data, steps, next_step, update, due, evaluate };

// The phase of a run: it goes from one to the next along the arrows in run_phase.cpp, and a call outside its phases is an
// error.
class RunPhase {
 public:
  Phase now() const { return now_; }
  bool loop_has_begun() const { return now_ >= Phase::between_steps; }
  bool in_body() const { return now_ >= Phase::in_step && now_ <= Phase::updated; }

  void enter(Phase next);

  // Error{invalid_argument} names the phase, unless the call belongs there. `step`: that is done next.
  void require(RunCall call, std::int64_t step) const;

 private:
  Phase now_ = Phase::preparing;
};

}  // namespace trireme::trainer
