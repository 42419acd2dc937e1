#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// What a rank of a pipeline does next.
struct PipelineAction {
  enum class Kind : std::uint8_t {
    forward,
    backward,          // of the input where the schedule splits backward, else all of it
    weight_gradient,   // the rest of a backward pass that is split
    send_forward,      // this stage's output
    receive_forward,   // this stage's input; posted here, waited for by the forward that needs it
    send_backward,     // the gradient of this stage's input
    receive_backward,  // the gradient of this stage's output; waited for by the backward that needs it
  };
  Kind kind;
  int stage;
  int micro_batch;

  auto operator<=>(const PipelineAction&) const = default;
  std::string str() const;  // "F 2.0": stage 2, micro-batch 0
};

// Who does what in which order. Stage s lies on rank s % num_ranks.
struct PipelineSchedule {
  std::string name;
  int num_ranks = 1;
  int num_chunks = 1;  // stages of a rank
  int num_micro_batches = 1;
  bool splits_backward = false;
  std::vector<std::vector<PipelineAction>> actions = {};  // by rank
  std::vector<int> activation_bounds = {};                // by rank: the most activations that it keeps at once

  int num_stages() const { return num_ranks * num_chunks; }
  int rank_of(int stage) const { return stage % num_ranks; }
};

struct PipelineScheduleOptions {
  std::string name = "1f1b";
  int num_ranks = 1;
  int num_chunks = 1;
  int num_micro_batches = 1;
};

// f, b and w: seconds of a rank's forward, input gradients and weight gradients of one micro-batch; p ranks, m micro-batches
// and v chunks. Idle is what each rank waits in a step of equal ranks, without transfers; activations are the most that rank r
// keeps at once, of one micro-batch and stage each.
//
// name         idle                                                        activations
// gpipe        (p - 1) (f + b + w)                                         m
// 1f1b         (p - 1) (f + b + w)                                         min(p - r, m)
// interleaved  (p - 1) (f + b + w) / v                                     min(2 (p - r - 1) + (v - 1) p + 1, v m)
// zb           (p - 1) max(f, b, f + b - w) + max(p - m, 0) min(f, b, w)   min(p, m), of some only what w needs
//
// gpipe: all forwards, then all backwards (Huang et al. 2018, arXiv 1811.06965). 1f1b: one forward, one backward in turn
// (PipeDream-Flush; Narayanan et al. 2020, arXiv 2006.09503). interleaved: the same with several stages a rank (Narayanan et
// al. 2021, arXiv 2104.04473); the micro-batches are a multiple of the ranks. zb: ZB-H1, 1f1b with weight gradients put off to
// where a rank would wait (Qi et al. 2023, arXiv 2401.10241). Throws Error{invalid_argument} that names numbers that fit.
PipelineSchedule make_pipeline_schedule(const PipelineScheduleOptions& options);

std::vector<std::string> pipeline_schedule_names();

// How many activations `rank` keeps at most, each from its forward to the last action that needs what that left.
int peak_activations(const PipelineSchedule& schedule, int rank);

// Throws Error{invalid_argument} that names the rank and the action unless every forward, backward and weight gradient runs
// once, after what it depends on; receives between two ranks are posted in the order of the sends; no rank waits forever; and
// no rank keeps more activations than its bound.
void require_valid(const PipelineSchedule& schedule);

}  // namespace parallel
}  // namespace trireme
