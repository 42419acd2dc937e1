#include "trireme/parallel/pipeline/pipeline_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "parallel/pipeline/pipeline_transfers.hpp"
#include "trireme/core/error.hpp"

namespace trireme::parallel {
namespace {

using Kind = PipelineAction::Kind;

class VirtualTime {
 public:
  VirtualTime(const PipelineSchedule& schedule, std::span<const StageSeconds> stages, double transfer_seconds)
      : schedule_(schedule), stages_(stages), transfer_seconds_(transfer_seconds), next_(schedule.actions.size(), 0) {
    timeline_.actions.resize(schedule.actions.size());
  }

  PipelineTimeline run() {
    for (bool advanced = true; advanced;) {
      advanced = false;
      for (std::size_t rank = 0; rank < next_.size(); ++rank) {
        while (next_[rank] < schedule_.actions[rank].size() && step(rank, schedule_.actions[rank][next_[rank]])) {
          ++next_[rank];
          advanced = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < next_.size(); ++rank) {
      const auto& actions = schedule_.actions[rank];
      if (next_[rank] < actions.size()) {
        throw Error({.code = ErrorCode::invalid_argument,
                     .message = fmt::format("schedule {}: no rank can go on, rank {} waits in {}", schedule_.name, rank,
                                            actions[next_[rank]].str())});
      }
      timeline_.seconds = std::max(timeline_.seconds, now(rank));
    }
    return std::move(timeline_);
  }

 private:
  double now(std::size_t rank) const {
    const auto& done = timeline_.actions[rank];
    return done.empty() ? 0 : done.back().end;
  }

  double seconds_of(const PipelineAction& action) const {
    const StageSeconds& stage = stages_[static_cast<std::size_t>(action.stage)];
    if (action.kind == Kind::forward) return stage.forward;
    if (action.kind == Kind::weight_gradient) return stage.weight_gradient;
    return schedule_.splits_backward ? stage.backward : stage.backward + stage.weight_gradient;
  }

  // Performs the action; false if it needs a message that is not sent yet.
  bool step(std::size_t rank, const PipelineAction& action) {
    if (action.kind == Kind::send_forward || action.kind == Kind::send_backward) {
      arrivals_[receipt_of(action)] = now(rank) + transfer_seconds_;
      return true;
    }
    if (action.kind == Kind::receive_forward || action.kind == Kind::receive_backward) return true;
    double begin = now(rank);
    if (const auto receive = receive_of(schedule_, action)) {
      const auto arrival = arrivals_.find(*receive);
      if (arrival == arrivals_.end()) return false;
      begin = std::max(begin, arrival->second);
    }
    timeline_.actions[rank].push_back({action, begin, begin + seconds_of(action)});
    return true;
  }

  const PipelineSchedule& schedule_;
  std::span<const StageSeconds> stages_;
  double transfer_seconds_;
  std::vector<std::size_t> next_;  // by rank
  std::map<PipelineAction, double> arrivals_;
  PipelineTimeline timeline_;
};

}  // namespace

double PipelineTimeline::idle_seconds(int rank) const {
  const auto& done = actions[static_cast<std::size_t>(rank)];
  return std::accumulate(done.begin(), done.end(), seconds,
                         [](double idle, const TimedAction& timed) { return idle - (timed.end - timed.begin); });
}

double PipelineTimeline::bubble() const {
  double idle = 0;
  for (std::size_t rank = 0; rank < actions.size(); ++rank) idle += idle_seconds(static_cast<int>(rank));
  return seconds == 0 ? 0 : idle / (seconds * static_cast<double>(actions.size()));
}

PipelineTimeline simulate(const PipelineSchedule& schedule, std::span<const StageSeconds> stages, double transfer_seconds) {
  require(stages.size() == static_cast<std::size_t>(schedule.num_stages()), "{} stages need as many times, got {}",
          schedule.num_stages(), stages.size());
  return VirtualTime(schedule, stages, transfer_seconds).run();
}

}  // namespace trireme::parallel
