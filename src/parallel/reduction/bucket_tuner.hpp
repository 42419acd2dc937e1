#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parallel/reduction/bucket_profile.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/parallel/reduction/bucket_cuts.hpp"

namespace trireme::parallel {

// Finds the buckets of a run in its first steps: notes when gradients are final, times reductions on the group's links, solves
// for the cuts with the least exposed time, then compares these with some fixed caps by the time of real steps. All ranks
// decide the same. A profile that an earlier run wrote for the same case is used without tuning; otherwise the result is
// written to it.
class BucketTuner {
 public:
  // Returns the seconds of one reduction of so many bytes of gradients. Collective.
  using Trial = std::function<double(std::int64_t bytes)>;

  // `copies`: all ranks that hold copies of the same parameters, including `group`; they decide alike. `profile`: a file that
  // rank 0 reads and writes; empty: none.
  BucketTuner(const Group& group, const Group& copies, std::vector<std::int64_t> gradient_bytes, BucketCuts initial,
              std::string profile);

  // Call it before each step: the cuts for the step; nothing if they do not change. Collective.
  std::optional<BucketCuts> next_cuts(const Trial& trial);

  // Call these during a step: when its last micro-batch starts, when a gradient is final, and when all gradients are reduced.
  void begin();
  void final(std::size_t gradient);
  void end();
  void give_up();  // discards the step that next_cuts() began

  const std::optional<BucketTuning>& result() const { return result_; }

 private:
  struct Candidate {
    BucketCuts cuts;
    double predicted_seconds = 0;
    std::vector<double> steps;
  };
  TuningCase tuning_case() const { return {.gradient_bytes = bytes_, .nodes = group_.nodes()}; }
  void load_profile();
  void require_writable_profile() const;
  void save_profile();
  void make_candidates(const Trial& trial);
  std::vector<double> slowest(std::vector<double> seconds) const;
  BucketCuts decide();

  Group group_;
  Group copies_;
  std::vector<std::int64_t> bytes_;
  BucketCuts initial_;
  std::string profile_;
  std::string refusal_;  // why the profile was not used
  int step_ = 0;
  Stopwatch since_begin_;
  std::vector<std::vector<double>> ready_;  // by observed step, by gradient
  std::vector<Candidate> candidates_;
  std::optional<BucketTuning> result_;
};

}  // namespace trireme::parallel
