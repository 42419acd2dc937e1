#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/text/text_batch.hpp"
#include "trireme/data/text/token_batch.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct MaskingOptions {
  std::int32_t mask_token = 0;
  std::int64_t vocabulary = 0;             // random tokens are below
  std::vector<std::int32_t> special = {};  // never chosen, as [CLS], [SEP] and padding
  double probability = 0.15;               // of a token to be chosen
  double masked = 0.8;                     // share of the chosen ones that become mask_token,
  double random = 0.1;                     // or any token; the others stay
  std::uint64_t seed = 0;
};

// The batch of masked-language pretraining (Devlin et al. 2018, arXiv 1810.04805): some tokens are chosen and most of them
// hidden; targets are the tokens at the chosen places, elsewhere no_target. Padding is never chosen. What is chosen
// depends on (seed, number of the row's sample, place) alone, so that any number of ranks learns the same.
//
//   for (auto& step : run.steps(loader)) {
//     step.backward(bert, step.batches() | std::views::transform([&](const auto& b) { return data::mask_tokens(b, masking);
//     }));
TextBatch mask_tokens(const TextBatch& batch, const MaskingOptions& options);
TextBatch mask_tokens(const TokenBatch& batch, const MaskingOptions& options);  // of a text without padding

}  // namespace data
}  // namespace trireme
