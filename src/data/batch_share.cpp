#include "trireme/data/batch_share.hpp"

#include <algorithm>
#include <limits>

#include "trireme/core/error.hpp"

namespace trireme::data {

Range share_of(std::int64_t items, int index, int count) {
  const std::int64_t each = items / count, larger = items % count;  // the first ranks have one item more
  const std::int64_t begin = index * each + std::min<std::int64_t>(index, larger);
  return {.begin = begin, .end = begin + each + (index < larger ? 1 : 0)};
}

BatchShare::BatchShare(const BatchOptions& options) : batch_size_(options.batch_size) {
  const auto& [batch_size, micro_batch_size, seed, index, count] = options;
  require(count > 0 && index >= 0 && index < count, "share {} of {} does not exist", index, count);
  require(batch_size > 0 && batch_size % count == 0,
          "a batch of {} samples cannot be shared equally by {} ranks; use a multiple of {}", batch_size, count, count);
  require(micro_batch_size >= 0, "the micro-batch size {} is below 0", micro_batch_size);
  share_ = batch_size / count;
  first_row_ = index * share_;
  micro_batch_size_ = micro_batch_size == 0 ? share_ : micro_batch_size;
  require(share_ % micro_batch_size_ == 0, "micro-batches of {} samples do not divide the {} samples of a rank evenly",
          micro_batch_size_, share_);
}

std::int64_t BatchShare::first_sample(std::int64_t step, std::int64_t micro_batch) const {
  require(step >= 0, "steps are numbered from 0, got {}", step);
  require(step < std::numeric_limits<std::int64_t>::max() / batch_size_,
          "the samples of step {} have no numbers: it is too large", step);
  require(micro_batch >= 0 && micro_batch < num_micro_batches(), "micro-batch {} does not exist, a step has {}", micro_batch,
          num_micro_batches());
  return step * batch_size_ + first_row_ + micro_batch * micro_batch_size_;
}

}  // namespace trireme::data
