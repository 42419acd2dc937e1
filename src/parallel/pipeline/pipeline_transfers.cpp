#include "parallel/pipeline/pipeline_transfers.hpp"

#include <algorithm>
#include <utility>

namespace trireme::parallel {
namespace {

using Kind = PipelineAction::Kind;
using Actions = std::vector<PipelineAction>;

// The receives of everything that `from` sends to `to`.
Actions messages(const PipelineSchedule& schedule, int from, int to) {
  Actions receives;
  for (const PipelineAction& compute : schedule.actions[static_cast<std::size_t>(from)]) {
    const auto send = send_of(schedule, compute);
    if (!send) continue;
    const PipelineAction receive = receipt_of(*send);
    if (schedule.rank_of(receive.stage) == to) receives.push_back(receive);
  }
  return receives;
}

Actions with_transfers(const PipelineSchedule& schedule, int rank) {
  std::vector<Actions> expected;  // by sender, not yet posted
  for (int from = 0; from < schedule.num_ranks; ++from) expected.push_back(messages(schedule, from, rank));
  Actions result;
  const auto post = [&](const PipelineAction& compute) {
    const auto receive = receive_of(schedule, compute);
    if (!receive) return;
    for (Actions& from : expected) {
      const auto found = std::ranges::find(from, *receive);
      if (found == from.end()) continue;
      result.insert(result.end(), from.begin(), found + 1);
      from.erase(from.begin(), found + 1);
    }
  };
  const Actions& computes = schedule.actions[static_cast<std::size_t>(rank)];
  for (std::size_t index = 0; index < computes.size(); ++index) {
    post(computes[index]);
    if (index + 1 < computes.size()) post(computes[index + 1]);
    result.push_back(computes[index]);
    if (const auto send = send_of(schedule, computes[index])) result.push_back(*send);
  }
  return result;
}

}  // namespace

std::optional<PipelineAction> receive_of(const PipelineSchedule& schedule, const PipelineAction& compute) {
  if (schedule.num_ranks == 1) return std::nullopt;
  const auto [kind, stage, micro_batch] = compute;
  if (kind == Kind::forward && stage > 0) return PipelineAction{Kind::receive_forward, stage, micro_batch};
  if (kind == Kind::backward && stage < schedule.num_stages() - 1) {
    return PipelineAction{Kind::receive_backward, stage, micro_batch};
  }
  return std::nullopt;
}

std::optional<PipelineAction> send_of(const PipelineSchedule& schedule, const PipelineAction& compute) {
  if (schedule.num_ranks == 1) return std::nullopt;
  const auto [kind, stage, micro_batch] = compute;
  if (kind == Kind::forward && stage < schedule.num_stages() - 1) return PipelineAction{Kind::send_forward, stage, micro_batch};
  if (kind == Kind::backward && stage > 0) return PipelineAction{Kind::send_backward, stage, micro_batch};
  return std::nullopt;
}

PipelineAction receipt_of(const PipelineAction& send) {
  return send.kind == Kind::send_forward ? PipelineAction{Kind::receive_forward, send.stage + 1, send.micro_batch}
                                         : PipelineAction{Kind::receive_backward, send.stage - 1, send.micro_batch};
}

void add_transfers(PipelineSchedule& schedule) {
  std::vector<Actions> actions;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) actions.push_back(with_transfers(schedule, rank));
  schedule.actions = std::move(actions);
}

}  // namespace trireme::parallel
