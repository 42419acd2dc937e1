#include "trireme/data/loaders/window_loader.hpp"

#include <utility>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme::data {

TokenBatch read_windows(const TokenDataset& dataset, std::span<const std::int64_t> starts, std::int64_t length) {
  const auto rows = static_cast<std::int64_t>(starts.size());
  TokenBatch batch{.tokens = Tensor<std::int32_t>({rows, length}), .targets = Tensor<std::int32_t>({rows, length})};
  const auto row_size = static_cast<std::size_t>(length);
  for (std::size_t row = 0; row < starts.size(); ++row) {
    dataset.window(starts[row], batch.tokens.span().subspan(row * row_size, row_size));
    dataset.window(starts[row] + 1, batch.targets.span().subspan(row * row_size, row_size));
  }
  return batch;
}

WindowLoader::WindowLoader(TokenDataset dataset, const WindowLoaderOptions& options)
    : dataset_(std::move(dataset)),
      share_(options.batch),
      sampler_(dataset_.size(), options.length, options.order, options.batch.seed, options.batch.batch_size),
      length_(options.length) {
  require(share_.has_one_size() || options.order != WindowOrder::continued,
          "rows that continue from step to step need one batch size: leave batch_size_from_step out, or take "
          "WindowOrder::shuffled or random");
}

TokenBatch WindowLoader::load(std::int64_t step, std::int64_t micro_batch) const {
  const std::int64_t first = share_.first_sample(step, micro_batch);
  std::vector<std::int64_t> starts;
  for (std::int64_t row = 0; row < share_.micro_batch_size(step); ++row) starts.push_back(sampler_.start(first + row));
  TokenBatch batch = read_windows(dataset_, starts, length_);
  batch.first_sample = first;
  batch.first_row = first - share_.samples_of_steps(step);
  batch.continues = sampler_.continues(first);
  return batch;
}

}  // namespace trireme::data
