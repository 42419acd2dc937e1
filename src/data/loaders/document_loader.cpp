#include "trireme/data/loaders/document_loader.hpp"

#include <algorithm>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

LoaderOptions sampled(const DocumentLoaderOptions& options, const BatchOptions& batch) {
  return {.batch = batch, .order = options.order, .last = options.last};
}

}  // namespace

DocumentLoader::DocumentLoader(DocumentRows rows, const DocumentLoaderOptions& options)
    : rows_(std::move(rows)),
      sampler_(rows_.size(), sampled(options, options.batch)),
      of_all_ranks_(rows_.size(), sampled(options, {.batch_size = options.batch.batch_size,
                                                    .batch_size_from_step = options.batch.batch_size_from_step,
                                                    .seed = options.batch.seed})),
      pad_to_multiple_of_(options.pad_to_multiple_of) {
  require(pad_to_multiple_of_ >= 0, "rows cannot be padded to a multiple of {}", pad_to_multiple_of_);
}

std::int64_t DocumentLoader::time_of(std::span<const std::int64_t> rows) const {
  if (pad_to_multiple_of_ == 0) return rows_.length();
  std::int64_t longest = 1;
  for (const std::int64_t row : rows) longest = std::max(longest, rows_.tokens_of(row));
  const std::int64_t multiples = (longest + pad_to_multiple_of_ - 1) / pad_to_multiple_of_;
  return std::min(multiples * pad_to_multiple_of_, rows_.length());
}

TokenBatch DocumentLoader::load(std::int64_t step, std::int64_t micro_batch) const {
  const SampledItems items = sampler_.items(step, micro_batch);
  const SampledItems of_step = of_all_ranks_.items(step, 0);
  TokenBatch batch = rows_.collate(items.indices, items.first_sample, time_of(of_step.indices));
  batch.first_row = items.first_sample - of_step.first_sample;
  return batch;
}

}  // namespace trireme::data
