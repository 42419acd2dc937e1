#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// One action of a rank in a pipeline.
struct PipelineAction {
  enum class Kind : std::uint8_t {
    forward,
    backward,          // the whole backward pass; if the schedule splits it, only the gradient of the input
    weight_gradient,   // the rest of a split backward pass
    send_forward,      // sends this stage's output
    receive_forward,   // posts the receive of this stage's input; the forward pass that needs the input waits
    send_backward,     // sends the gradient of this stage's input
    receive_backward,  // posts the receive of the gradient of this stage's output; the backward pass waits for it
  };
  Kind kind;
  int stage;
  int micro_batch;

  auto operator<=>(const PipelineAction&) const = default;
  std::string str() const;  // "F 2.0": stage 2, micro-batch 0
};

// The actions of each rank, in order. Stage s lies on rank s % num_ranks.
struct PipelineSchedule {
  std::string name;
  int num_ranks = 1;
  int num_chunks = 1;  // stages on each rank
  int num_micro_batches = 1;
  bool splits_backward = false;
  std::vector<std::vector<PipelineAction>> actions = {};  // by rank
  std::vector<int> activation_bounds = {};                // by rank: the most activations that it may keep at a time

  int num_stages() const { return num_ranks * num_chunks; }
  int rank_of(int stage) const { return stage % num_ranks; }
};

struct PipelineScheduleOptions {
  std::string name = "1f1b";
  int num_ranks = 1;
  int num_chunks = 1;
  int num_micro_batches = 1;
};

// f, b and w are the seconds that a rank takes for the forward pass, the input gradients and the weight gradients of one
// micro-batch. There are p ranks, m micro-batches and v chunks. Idle: the seconds that each rank waits per step if ranks are
// equally fast and transfers take no time. Activations: the most that rank r keeps at a time; each belongs to one micro-batch
// and one stage.
//
// name         idle                                                        activations
// gpipe        (p - 1) (f + b + w)                                         m
// 1f1b         (p - 1) (f + b + w)                                         min(p - r, m)
// interleaved  (p - 1) (f + b + w) / v                                     min(2 (p - r - 1) + (v - 1) p + 1, v m)
//
// gpipe: all forward passes, then all backward passes (Huang et al. 2018, arXiv 1811.06965). 1f1b: a forward pass and a
// backward pass in turn (PipeDream-Flush; Narayanan et al. 2020, arXiv 2006.09503). interleaved: 1f1b with several stages per
// rank (Narayanan et al. 2021, arXiv 2104.04473); the number of micro-batches must be a multiple of the number of ranks. zb:
// ZB-H1, 1f1b with weight gradients delayed to times when a rank would wait (Qi et al. 2023, arXiv 2401.10241). Throws
// Error{invalid_argument} if the numbers do not fit the schedule.
PipelineSchedule make_pipeline_schedule(const PipelineScheduleOptions& options);

std::vector<std::string> pipeline_schedule_names();

// The most activations that `rank` keeps at a time. An activation is kept from its forward pass to its backward pass, or to
// its weight gradient if the schedule splits the backward pass.
int peak_activations(const PipelineSchedule& schedule, int rank);

// Throws Error{invalid_argument}, which names the rank and the action, unless all of these hold:
// - Every forward pass, backward pass and weight gradient runs once and after the actions that it depends on.
// - Receives between two ranks are posted in the order of the sends.
// - No rank waits forever, and no rank keeps more activations than its bound.
void require_valid(const PipelineSchedule& schedule);

}  // namespace parallel
}  // namespace trireme
