#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/data/sources/batch_options.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

using trireme::share_of;

// The samples of a step that one rank reads, in micro-batches. Samples are numbered over all steps and ranks, without gaps.
class BatchShare {
 public:
  // Throws Error if ranks or micro-batches can't share a batch equally (but see BatchOptions::uneven), for a batch with fewer
  // samples than ranks, and for steps of other sizes that do not ascend from 1 on.
  explicit BatchShare(const BatchOptions& options);

  std::int64_t batch_size() const noexcept { return phases_.front().batch_size; }  // of step 0
  std::int64_t batch_size(std::int64_t step) const { return phase_of(step).batch_size; }
  std::int64_t micro_batch_size(std::int64_t step) const { return phase_of(step).micro_batch_size; }
  std::int64_t num_micro_batches() const noexcept { return num_micro_batches_; }  // of every step
  bool has_one_size() const noexcept { return phases_.size() == 1; }              // all steps have as many samples

  // These throw Error for a step or micro-batch that does not exist, and if the numbers of samples overflow.
  std::int64_t first_sample(std::int64_t step, std::int64_t micro_batch) const;
  std::int64_t samples_of_steps(std::int64_t steps) const;    // of all ranks, in the first `steps` steps
  std::int64_t steps_of_samples(std::int64_t samples) const;  // the fewest steps that hold as many

 private:
  struct Phase {  // steps of one batch size
    std::int64_t from_step = 0;
    std::int64_t first_sample = 0;  // of its first step
    std::int64_t batch_size = 0;
    std::int64_t micro_batch_size = 0;
    std::int64_t first_row = 0;  // of this rank in a step
  };
  const Phase& phase_of(std::int64_t step) const;

  std::vector<Phase> phases_;  // at least one
  std::int64_t num_micro_batches_ = 1;
};

}  // namespace data
}  // namespace trireme
