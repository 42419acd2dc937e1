#include "trainer/run_phase.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::trainer {

namespace {

constexpr auto arrows = std::to_array<std::pair<Phase, Phase>>({{Phase::preparing, Phase::loaded},
                                                                {Phase::loaded, Phase::between_steps},
                                                                {Phase::between_steps, Phase::in_step},
                                                                {Phase::in_step, Phase::finished},
                                                                {Phase::finished, Phase::updated},
                                                                {Phase::between_steps, Phase::updated},
                                                                {Phase::updated, Phase::between_steps},
                                                                {Phase::between_steps, Phase::ended}});

template <typename... Phases>
constexpr unsigned among(Phases... phases) {
  return ((1U << static_cast<unsigned>(phases)) | ...);
}

// The phases in which a call is allowed, and the message for others.
struct CallRule {
  RunCall call;
  const char* text;  // {}: the step
  unsigned phases;
};

constexpr auto rules = std::to_array<CallRule>({
    {RunCall::add, "models are added to a run before its loop, and before what loads its checkpoint", among(Phase::preparing)},
    {RunCall::keep, "what a checkpoint keeps is told before the run's loop, and before what loads its checkpoint",
     among(Phase::preparing)},
    {RunCall::describe, "settings are described before the run's loop, and before what loads its checkpoint",
     among(Phase::preparing)},
    {RunCall::describe_data, "data are described before the run's loop, and before what loads its checkpoint",
     among(Phase::preparing)},
    {RunCall::steps, "a run has one loop: its steps() are gone through once", among(Phase::preparing, Phase::loaded)},
    {RunCall::next_step, "step {} has ended without step.update(optimizer): nothing was learnt from its batches",
     among(Phase::updated)},
    {RunCall::update, "update() of step {} after its end: a step has one", among(Phase::in_step, Phase::finished)},
    {RunCall::due, "due() is asked in the loop, after step.update(optimizer)", among(Phase::updated)},
    {RunCall::evaluate,
     "evaluate() before step.update(optimizer): the step is open, and its values are about to change; evaluate after it",
     among(Phase::preparing, Phase::loaded, Phase::between_steps, Phase::updated, Phase::ended)},
});

std::string words_of(Phase phase, std::int64_t step) {
  switch (phase) {
    case Phase::preparing: return "being prepared: its checkpoint is not loaded yet";
    case Phase::loaded: return "loaded, before its loop";
    case Phase::between_steps: return "between two steps of its loop";
    case Phase::in_step: return fmt::format("in step {}, before its update", step);
    case Phase::finished: return fmt::format("in step {}, after its finish() and before its update", step);
    case Phase::updated: return fmt::format("in step {}, after its update", step);
    case Phase::ended: return "after its loop";
  }
  return {};
}

}  // namespace

void RunPhase::enter(Phase next) {
  if (std::ranges::find(arrows, std::pair(now_, next)) == arrows.end()) {
    throw Error(
        {.message = fmt::format("a run does not go from phase {} to {}", static_cast<int>(now_), static_cast<int>(next))});
  }
  now_ = next;
}

void RunPhase::require(RunCall call, std::int64_t step) const {
  const CallRule& rule = *std::ranges::find(rules, call, &CallRule::call);
  if ((rule.phases & among(now_)) != 0) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("{}; the run is {}", fmt::format(fmt::runtime(rule.text), step), words_of(now_, step))});
}

}  // namespace trireme::trainer
