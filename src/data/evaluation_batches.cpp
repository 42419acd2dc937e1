#include "trireme/data/evaluation_batches.hpp"

#include <algorithm>
#include <numeric>

#include "trireme/data/batch_share.hpp"

namespace trireme::data {

EvaluationShare::EvaluationShare(std::int64_t dataset_size, const BatchOptions& options)
    : batch_size_(BatchShare(options).micro_batch_size()) {
  const std::int64_t each = dataset_size / options.count;
  const std::int64_t larger = dataset_size % options.count;  // the first ranks have one item more
  begin_ = options.index * each + std::min<std::int64_t>(options.index, larger);
  end_ = begin_ + each + (options.index < larger ? 1 : 0);
}

std::vector<std::int64_t> EvaluationShare::items(std::int64_t batch) const {
  const std::int64_t first = begin_ + batch * batch_size_;
  std::vector<std::int64_t> items(static_cast<std::size_t>(std::min(batch_size_, end_ - first)));
  std::iota(items.begin(), items.end(), first);
  return items;
}

}  // namespace trireme::data
