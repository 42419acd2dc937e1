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

// Finds the buckets of one training run in its first steps: notes when gradients are final, times reductions on the group's
// links, solves for the cuts with the least exposed time, then lets the live steps decide between it and some fixed caps. All
// ranks go through the same steps and decide the same. With a profile it starts with what an earlier run has found for the same
// case, or else leaves there what it finds.
class BucketTuner {
 public:
  // Seconds of one reduction of so many bytes, anywhere in the gradients. Collective.
  using Trial = std::function<double(std::int64_t bytes)>;

  // `copies`: the ranks of `group` and all others that hold copies of the same parameters; they decide alike. `profile`: a file
  // that rank 0 reads and writes; none where empty.
  BucketTuner(const Group& group, const Group& copies, std::vector<std::int64_t> gradient_bytes, BucketCuts initial,
              std::string profile);

  // Before each step: the cuts for it; nothing where it stays. Collective.
  std::optional<BucketCuts> next_cuts(const Trial& trial);

  // During a step: when its last micro-batch starts, when gradients are final, when all is reduced.
  void begin();
  void final(std::size_t gradient);
  void end();
  void give_up();  // the step that next_cuts() began counts for nothing

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
  std::vector<double> slowest(std::vector<double> seconds) const;  // of all ranks with copies, each
  BucketCuts decide();

  Group group_;
  Group copies_;
  std::vector<std::int64_t> bytes_;
  BucketCuts initial_;
  std::string profile_;
  std::string refusal_;  // why the profile was not taken
  int step_ = 0;
  Stopwatch since_begin_;
  std::vector<std::vector<double>> ready_;  // by observed step, by gradient
  std::vector<Candidate> candidates_;
  std::optional<BucketTuning> result_;
};

}  // namespace trireme::parallel
