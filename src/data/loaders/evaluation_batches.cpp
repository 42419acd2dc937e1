#include "trireme/data/loaders/evaluation_batches.hpp"

#include <algorithm>
#include <numeric>

#include "trireme/data/sources/batch_share.hpp"

namespace trireme::data {

EvaluationShare::EvaluationShare(std::int64_t dataset_size, const BatchOptions& options)
    : batch_size_(BatchShare(options).micro_batch_size(0)), share_(share_of(dataset_size, options.index, options.count)) {}

std::vector<std::int64_t> EvaluationShare::items(std::int64_t batch) const {
  const std::int64_t first = share_.begin + batch * batch_size_;
  std::vector<std::int64_t> items(static_cast<std::size_t>(std::min(batch_size_, share_.end - first)));
  std::iota(items.begin(), items.end(), first);
  return items;
}

}  // namespace trireme::data
