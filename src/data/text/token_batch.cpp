#include "trireme/data/text/token_batch.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"

namespace trireme::data {

TokenBatch joined_rows(std::vector<TokenBatch> batches) {
  require(!batches.empty(), "no batches to join");
  std::int64_t rows = 0;
  for (const TokenBatch& batch : batches) {
    require(batch.time() == batches.front().time(), "rows of {} and of {} tokens cannot be joined", batches.front().time(),
            batch.time());
    rows += batch.rows();
  }
  const auto has_starts = [](const TokenBatch& batch) { return batch.document_starts.defined(); };
  const Shape shape{rows, batches.front().time()};
  TokenBatch joined{.tokens = Tensor<std::int32_t>(shape),
                    .targets = Tensor<std::int32_t>(shape),
                    .document_starts = {},
                    .first_sample = batches.front().first_sample,
                    .first_row = batches.front().first_row,
                    .nominal_targets = batches.front().nominal_targets};
  if (std::ranges::any_of(batches, has_starts)) joined.document_starts = Tensor<std::int32_t>::full(shape, 0);
  std::int64_t at = 0;
  for (const TokenBatch& batch : batches) {
    std::copy_n(batch.tokens.data(), batch.tokens.numel(), joined.tokens.data() + at);
    std::copy_n(batch.targets.data(), batch.targets.numel(), joined.targets.data() + at);
    if (has_starts(batch))
      std::copy_n(batch.document_starts.data(), batch.document_starts.numel(), joined.document_starts.data() + at);
    at += batch.tokens.numel();
  }
  return joined;
}

}  // namespace trireme::data
