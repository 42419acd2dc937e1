#pragma once

#include <cstdint>
#include <string_view>

namespace trireme::trainer {

// The phases of a run. In a run without a model, which updates nothing, the body of a step is in phase `updated`.
enum class Phase : std::uint8_t { preparing, loaded, between_steps, in_step, finished, updated, ended };

// Calls that are allowed only in certain phases.
enum class RunCall : std::uint8_t { add, keep, describe, describe_data, steps, next_step, update, due, evaluate };

// The phase of a run. run_phase.cpp lists the transitions, and the phases in which each call is allowed.
class RunPhase {
 public:
  Phase now() const { return now_; }
  bool loop_has_begun() const { return now_ >= Phase::between_steps; }
  bool in_body() const { return now_ >= Phase::in_step && now_ <= Phase::updated; }

  void enter(Phase next);

  // Throws Error{invalid_argument} with the phase unless the call is allowed in it. `step`: the current or next step.
  void require(RunCall call, std::int64_t step) const;

 private:
  Phase now_ = Phase::preparing;
};

}  // namespace trireme::trainer
