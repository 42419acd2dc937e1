#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/data/text/token_dataset.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Tokens as a dataset of windows that follow each other without overlap, for evaluation_batches: each token but the first, and
// the last ones that fill no window, is a target once.
//
//   data::evaluation_batches(data::TokenWindows(text.validation, 256), {.batch_size = 16})
class TokenWindows {
 public:
  // Tokens that hold no window of `length` and the one after them throw Error.
  TokenWindows(TokenDataset tokens, std::int64_t length);

  std::int64_t size() const { return size_; }
  const TokenDataset& tokens() const { return tokens_; }
  TokenBatch collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const;

 private:
  TokenDataset tokens_;
  std::int64_t length_;
  std::int64_t size_;
};

inline std::string content_of(const TokenWindows& windows) { return content_of(windows.tokens()); }

}  // namespace data
}  // namespace trireme
