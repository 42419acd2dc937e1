#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/data/sources/batch_options.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

using trireme::share_of;

// The samples of a step that one rank reads, in micro-batches. Samples are numbered over all steps and ranks: row r of a step
// is sample step * batch_size + r.
class BatchShare {
 public:
  // Throws Error if ranks or micro-batches can't share the batch equally (but see BatchOptions::uneven), and for a batch with
  // fewer samples than ranks.
  explicit BatchShare(const BatchOptions& options);

  std::int64_t batch_size() const noexcept { return batch_size_; }
  std::int64_t micro_batch_size() const noexcept { return micro_batch_size_; }
  std::int64_t num_micro_batches() const noexcept { return share_ / micro_batch_size_; }
  // Throws Error for a step or micro-batch that does not exist.
  std::int64_t first_sample(std::int64_t step, std::int64_t micro_batch) const;

 private:
  std::int64_t batch_size_;
  std::int64_t micro_batch_size_;
  std::int64_t first_row_;
  std::int64_t share_;
};

}  // namespace data
}  // namespace trireme
