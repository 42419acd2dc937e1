#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/data/text/token_dataset.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A dataset of consecutive windows of tokens without overlap, for evaluation_batches. Each token is a target once, except the
// first token and the tokens at the end that fill no window.
//
//   data::evaluation_batches(data::TokenWindows(text.validation, 256), {.batch_size = 16})
class TokenWindows {
 public:
  // Throws Error for fewer than length + 1 tokens.
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
