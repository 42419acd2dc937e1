#include <algorithm>
#include <optional>
#include <set>

#include "parallel/pipeline/pipeline_transfers.hpp"
#include "trireme/core/error.hpp"
#include "trireme/parallel/pipeline/pipeline_timeline.hpp"

namespace trireme::parallel {
namespace {

using Kind = PipelineAction::Kind;
using Actions = std::vector<PipelineAction>;

// The action that must come before `action` in its rank's list.
std::optional<PipelineAction> dependency_of(const PipelineSchedule& schedule, const PipelineAction& action) {
  const auto [kind, stage, micro_batch] = action;
  switch (kind) {
    case Kind::forward:
      if (schedule.num_ranks == 1 && stage > 0) return PipelineAction{Kind::forward, stage - 1, micro_batch};
      return receive_of(schedule, action);
    case Kind::backward:
      if (stage == schedule.num_stages() - 1) return PipelineAction{Kind::forward, stage, micro_batch};
      if (schedule.num_ranks == 1) return PipelineAction{Kind::backward, stage + 1, micro_batch};
      return receive_of(schedule, action);
    case Kind::weight_gradient:
    case Kind::send_backward: return PipelineAction{Kind::backward, stage, micro_batch};
    case Kind::send_forward: return PipelineAction{Kind::forward, stage, micro_batch};
    case Kind::receive_forward:
    case Kind::receive_backward: break;
  }
  return std::nullopt;
}

void check_order(const PipelineSchedule& schedule, int rank) {
  std::set<PipelineAction> done;
  for (const PipelineAction& action : schedule.actions[static_cast<std::size_t>(rank)]) {
    require(action.stage >= 0 && action.stage < schedule.num_stages() && schedule.rank_of(action.stage) == rank &&
                action.micro_batch >= 0 && action.micro_batch < schedule.num_micro_batches,
            "schedule {}: rank {} has {}, which is not its own", schedule.name, rank, action.str());
    const auto dependency = dependency_of(schedule, action);
    require(!dependency || done.contains(*dependency), "schedule {}: rank {} has {} before {}", schedule.name, rank,
            action.str(), dependency ? dependency->str() : "");
    require(done.insert(action).second, "schedule {}: rank {} has {} twice", schedule.name, rank, action.str());
  }
  for (int stage = rank; stage < schedule.num_stages(); stage += schedule.num_ranks) {
    for (int micro = 0; micro < schedule.num_micro_batches; ++micro) {
      for (const Kind kind : {Kind::forward, Kind::backward, Kind::weight_gradient}) {
        const bool wanted = kind != Kind::weight_gradient || schedule.splits_backward;
        const PipelineAction action{kind, stage, micro};
        require(done.contains(action) == wanted, "schedule {}: rank {} {} {}", schedule.name, rank, wanted ? "lacks" : "has",
                action.str());
      }
    }
  }
}

bool is_send(const PipelineAction& action) { return action.kind == Kind::send_forward || action.kind == Kind::send_backward; }

bool is_receive(const PipelineAction& action) {
  return action.kind == Kind::receive_forward || action.kind == Kind::receive_backward;
}

// The first stage exchanges nothing with an earlier one, the last nothing with a later one.
void check_ends(const PipelineSchedule& schedule, const PipelineAction& action) {
  const bool first = action.kind == Kind::receive_forward || action.kind == Kind::send_backward;
  const bool last = action.kind == Kind::send_forward || action.kind == Kind::receive_backward;
  require(!(first && action.stage == 0) && !(last && action.stage == schedule.num_stages() - 1),
          "schedule {}: {} crosses the end of the pipeline", schedule.name, action.str());
}

// Gradients become final in the last backward pass of the rank's first stage, so no other pass may come after it.
void check_last(const PipelineSchedule& schedule, int rank) {
  const PipelineAction* backward = nullptr;
  const PipelineAction* last = nullptr;
  for (const PipelineAction& action : schedule.actions[static_cast<std::size_t>(rank)]) {
    if (action.kind == Kind::backward && action.stage == rank) backward = &action;
    if (action.kind == (schedule.splits_backward ? Kind::weight_gradient : Kind::backward)) last = &action;
  }
  require(last == nullptr || (backward != nullptr && last->stage == rank && last->micro_batch == backward->micro_batch),
          "schedule {}: rank {} ends with {}, but gradients are final in {}", schedule.name, rank,
          last == nullptr ? "" : last->str(), backward == nullptr ? "none" : backward->str());
}

int sender_of(const PipelineSchedule& schedule, const PipelineAction& receive) {
  return schedule.rank_of(receive.kind == Kind::receive_forward ? receive.stage - 1 : receive.stage + 1);
}

void check_messages(const PipelineSchedule& schedule, int from, int to) {
  Actions sent;
  for (const PipelineAction& action : schedule.actions[static_cast<std::size_t>(from)]) {
    if (is_send(action) && schedule.rank_of(receipt_of(action).stage) == to) sent.push_back(receipt_of(action));
  }
  Actions received;
  for (const PipelineAction& action : schedule.actions[static_cast<std::size_t>(to)]) {
    if (is_receive(action) && sender_of(schedule, action) == from) received.push_back(action);
  }
  const auto [send, receive] = std::ranges::mismatch(sent, received);
  require(send == sent.end() && receive == received.end(), "schedule {}: rank {} sends for {} where rank {} posts {}",
          schedule.name, from, send == sent.end() ? "nothing" : send->str(), to,
          receive == received.end() ? "nothing" : receive->str());
}

}  // namespace

int peak_activations(const PipelineSchedule& schedule, int rank) {
  const Kind last = schedule.splits_backward ? Kind::weight_gradient : Kind::backward;
  int kept = 0;
  int peak = 0;
  for (const PipelineAction& action : schedule.actions[static_cast<std::size_t>(rank)]) {
    if (action.kind == Kind::forward) peak = std::max(peak, ++kept);
    if (action.kind == last) --kept;
  }
  return peak;
}

void require_valid(const PipelineSchedule& schedule) {
  const auto ranks = static_cast<std::size_t>(schedule.num_ranks);
  require(schedule.actions.size() == ranks && schedule.activation_bounds.size() == ranks,
          "schedule {}: {} lists and {} bounds for {} ranks", schedule.name, schedule.actions.size(),
          schedule.activation_bounds.size(), ranks);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) check_order(schedule, rank);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) check_last(schedule, rank);
  for (const auto& actions : schedule.actions) {
    for (const PipelineAction& action : actions) check_ends(schedule, action);
  }
  for (int from = 0; from < schedule.num_ranks; ++from) {
    for (int to = 0; to < schedule.num_ranks; ++to) check_messages(schedule, from, to);
  }
  simulate(schedule, std::vector<StageSeconds>(static_cast<std::size_t>(schedule.num_stages())));
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const int peak = peak_activations(schedule, rank);
    const int bound = schedule.activation_bounds[static_cast<std::size_t>(rank)];
    require(peak <= bound, "schedule {}: rank {} keeps {} activations, but should keep at most {}", schedule.name, rank, peak,
            bound);
  }
}

}  // namespace trireme::parallel
