#include "trireme/parallel/pipeline/pipeline_schedule.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "parallel/pipeline/pipeline_transfers.hpp"
#include "trireme/core/error.hpp"

namespace trireme::parallel {
namespace {

using Kind = PipelineAction::Kind;
using Actions = std::vector<PipelineAction>;

Actions gpipe(const PipelineSchedule& schedule, int rank) {
  Actions actions;
  for (int micro = 0; micro < schedule.num_micro_batches; ++micro) actions.push_back({Kind::forward, rank, micro});
  for (int micro = 0; micro < schedule.num_micro_batches; ++micro) actions.push_back({Kind::backward, rank, micro});
  return actions;
}

// `ahead` forwards, then forward and backward in turn. The passes of a rank are numbered over all chunks: num_ranks
// micro-batches of the first chunk, the same of the next, and so on.
Actions one_forward_one_backward(const PipelineSchedule& schedule, int rank, int ahead) {
  const int ranks = schedule.num_ranks;
  const int chunks = schedule.num_chunks;
  const int total = chunks * schedule.num_micro_batches;
  const auto micro_batch = [&](int number) {
    return chunks == 1 ? number : number / (ranks * chunks) * ranks + number % ranks;
  };
  const auto chunk = [&](int number) { return chunks == 1 ? 0 : number / ranks % chunks; };
  Actions actions;
  for (int number = -std::min(ahead, total); number < total; ++number) {
    const int forward = number + std::min(ahead, total);
    if (forward < total) actions.push_back({Kind::forward, chunk(forward) * ranks + rank, micro_batch(forward)});
    if (number >= 0) actions.push_back({Kind::backward, (chunks - 1 - chunk(number)) * ranks + rank, micro_batch(number)});
  }
  return actions;
}

Actions one_f_one_b(const PipelineSchedule& schedule, int rank) {
  return one_forward_one_backward(schedule, rank, schedule.num_ranks - rank - 1);
}

Actions interleaved(const PipelineSchedule& schedule, int rank) {
  const int ahead = 2 * (schedule.num_ranks - rank - 1) + (schedule.num_chunks - 1) * schedule.num_ranks;
  return one_forward_one_backward(schedule, rank, ahead);
}

// Rank r delays r weight gradients, so that all ranks keep the same number of activations.
Actions zero_bubble(const PipelineSchedule& schedule, int rank) {
  Actions actions;
  for (const PipelineAction& action : one_f_one_b(schedule, rank)) {
    actions.push_back(action);
    if (action.kind == Kind::backward && action.micro_batch >= rank) {
      actions.push_back({Kind::weight_gradient, rank, action.micro_batch - rank});
    }
  }
  for (int micro = std::max(0, schedule.num_micro_batches - rank); micro < schedule.num_micro_batches; ++micro) {
    actions.push_back({Kind::weight_gradient, rank, micro});
  }
  return actions;
}

int gpipe_activations(const PipelineSchedule& schedule, int) { return schedule.num_micro_batches; }

int one_f_one_b_activations(const PipelineSchedule& schedule, int rank) {
  return std::min(schedule.num_ranks - rank, schedule.num_micro_batches);
}

int interleaved_activations(const PipelineSchedule& schedule, int rank) {
  return std::min(2 * (schedule.num_ranks - rank - 1) + (schedule.num_chunks - 1) * schedule.num_ranks + 1,
                  schedule.num_chunks * schedule.num_micro_batches);
}

int zero_bubble_activations(const PipelineSchedule& schedule, int) {
  return std::min(schedule.num_ranks, schedule.num_micro_batches);
}

struct Algorithm {
  std::string_view name;
  Actions (*order)(const PipelineSchedule&, int rank);
  int (*activations)(const PipelineSchedule&, int rank);
  bool splits_backward = false;
  bool chunks = false;
};

constexpr Algorithm algorithms[] = {{"gpipe", gpipe, gpipe_activations},
                                    {"1f1b", one_f_one_b, one_f_one_b_activations},
                                    {"interleaved", interleaved, interleaved_activations, false, true},
                                    {"zb", zero_bubble, zero_bubble_activations, true}};

const Algorithm& algorithm_of(const std::string& name) {
  const auto* found = std::ranges::find(algorithms, name, &Algorithm::name);
  require(found != std::end(algorithms), "no pipeline schedule is called \"{}\": choose one of {}", name,
          fmt::join(pipeline_schedule_names(), ", "));
  return *found;
}

void check_chunks(const Algorithm& algorithm, const PipelineScheduleOptions& options) {
  if (!algorithm.chunks) {
    require(options.num_chunks == 1, "{} has 1 chunk a rank, not {}; the schedule interleaved takes several", options.name,
            options.num_chunks);
    return;
  }
  const int ranks = options.num_ranks;
  const int below = options.num_micro_batches / ranks * ranks;
  require(options.num_chunks > 1, "{} takes 2 chunks a rank or more, got {}; with 1 it is the schedule 1f1b", options.name,
          options.num_chunks);
  require(options.num_micro_batches % ranks == 0,
          "{} takes as many micro-batches as {} ranks or a multiple, not {}; {} would do", options.name, ranks,
          options.num_micro_batches, below == 0 ? std::to_string(ranks) : fmt::format("{} or {}", below, below + ranks));
}

}  // namespace

std::string PipelineAction::str() const {
  static constexpr std::string_view names[] = {"F", "B", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
  return fmt::format("{} {}.{}", names[static_cast<std::size_t>(kind)], stage, micro_batch);
}

std::vector<std::string> pipeline_schedule_names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms) names.emplace_back(algorithm.name);
  return names;
}

PipelineSchedule make_pipeline_schedule(const PipelineScheduleOptions& options) {
  const Algorithm& algorithm = algorithm_of(options.name);
  require(options.num_ranks > 0 && options.num_micro_batches > 0,
          "a pipeline needs at least 1 rank and 1 micro-batch, got {} and {}", options.num_ranks, options.num_micro_batches);
  constexpr double most_actions = 1 << 22;
  require(
      options.num_chunks > 0 && 1.0 * options.num_ranks * options.num_chunks * options.num_micro_batches <= most_actions,
      "{} ranks with {} chunks each and {} micro-batches: a pipeline has 1 chunk a rank or more, and up to {} forward passes",
      options.num_ranks, options.num_chunks, options.num_micro_batches, most_actions);
  check_chunks(algorithm, options);
  PipelineSchedule schedule{.name = options.name,
                            .num_ranks = options.num_ranks,
                            .num_chunks = options.num_chunks,
                            .num_micro_batches = options.num_micro_batches,
                            .splits_backward = algorithm.splits_backward};
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    schedule.actions.push_back(algorithm.order(schedule, rank));
    schedule.activation_bounds.push_back(algorithm.activations(schedule, rank));
  }
  add_transfers(schedule);
  return schedule;
}

}  // namespace trireme::parallel
