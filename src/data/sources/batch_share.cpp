#include "trireme/data/sources/batch_share.hpp"

#include <algorithm>
#include <limits>

#include "trireme/core/error.hpp"

namespace trireme::data {

BatchShare::BatchShare(const BatchOptions& options) : batch_size_(options.batch_size) {
  const auto& [batch_size, micro_batch_size, seed, index, count, uneven] = options;
  require(count > 0 && index >= 0 && index < count, "share {} of {} does not exist", index, count);
  require(batch_size > 0 && (uneven || batch_size % count == 0),
          "a batch of {} samples cannot be shared equally by {} ranks; use a multiple of {}, or BatchOptions::uneven",
          batch_size, count, count);
  require(batch_size >= count, "a batch of {} samples has none for some of {} ranks; use at least {}", batch_size, count,
          count);
  require(micro_batch_size >= 0, "the micro-batch size {} is below 0", micro_batch_size);
  require(batch_size % count == 0 || micro_batch_size == 0,
          "a batch of {} samples cannot be shared equally by {} ranks, in micro-batches of {}; use a multiple of {}, or no "
          "micro-batches",
          batch_size, count, micro_batch_size, count * std::max<std::int64_t>(1, micro_batch_size));
  const Range share = share_of(batch_size, index, count);
  share_ = share.count();
  first_row_ = share.begin;
  micro_batch_size_ = micro_batch_size == 0 ? share_ : micro_batch_size;
  require(share_ % micro_batch_size_ == 0, "micro-batches of {} samples do not divide the {} samples of a rank evenly",
          micro_batch_size_, share_);
  constexpr std::int64_t most_rows = std::numeric_limits<std::int32_t>::max();
  require(micro_batch_size_ <= most_rows && num_micro_batches() <= most_rows,
          "a batch of {} samples is {} micro-batches of {} on a rank; at most {} of either can be computed", batch_size,
          num_micro_batches(), micro_batch_size_, most_rows);
}

std::int64_t BatchShare::first_sample(std::int64_t step, std::int64_t micro_batch) const {
  require(step >= 0, "steps are numbered from 0, got {}", step);
  require(step < std::numeric_limits<std::int64_t>::max() / batch_size_,
          "step {} is too large: the numbers of its samples overflow", step);
  require(micro_batch >= 0 && micro_batch < num_micro_batches(), "micro-batch {} does not exist, a step has {}", micro_batch,
          num_micro_batches());
  return step * batch_size_ + first_row_ + micro_batch * micro_batch_size_;
}

}  // namespace trireme::data
