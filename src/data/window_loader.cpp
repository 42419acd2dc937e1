#include "trireme/data/window_loader.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace trireme::data {
namespace {

WindowLoaderOptions checked(WindowLoaderOptions options) {
  require(options.count > 0 && options.index >= 0 && options.index < options.count, "share {} of {} does not exist",
          options.index, options.count);
  require(options.batch_size > 0 && options.batch_size % options.count == 0,
          "a batch of {} samples cannot be shared equally by {} ranks; use a multiple of {}", options.batch_size, options.count,
          options.count);
  require(options.micro_batch_size >= 0, "the micro-batch size {} is below 0", options.micro_batch_size);
  const std::int64_t share = options.batch_size / options.count;
  if (options.micro_batch_size == 0) options.micro_batch_size = share;
  require(share % options.micro_batch_size == 0, "micro-batches of {} samples do not divide the {} samples of a rank evenly",
          options.micro_batch_size, share);
  return options;
}

}  // namespace

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
      options_(checked(options)),
      sampler_(dataset_.size(), options_.length, options_.order, options_.seed, options_.batch_size),
      share_(options_.batch_size / options_.count) {}

std::int64_t WindowLoader::num_micro_batches() const { return share_ / options_.micro_batch_size; }

TokenBatch WindowLoader::load(std::int64_t step, std::int64_t micro_batch) const {
  require(step >= 0, "steps are numbered from 0, got {}", step);
  require(micro_batch >= 0 && micro_batch < num_micro_batches(), "micro-batch {} does not exist, a step has {}", micro_batch,
          num_micro_batches());
  const std::int64_t first = step * options_.batch_size + options_.index * share_ + micro_batch * options_.micro_batch_size;
  std::vector<std::int64_t> starts;
  for (std::int64_t row = 0; row < options_.micro_batch_size; ++row) starts.push_back(sampler_.start(first + row));
  TokenBatch batch = read_windows(dataset_, starts, options_.length);
  batch.first_sample = first;
  batch.continues = sampler_.continues(first);
  return batch;
}

}  // namespace trireme::data
