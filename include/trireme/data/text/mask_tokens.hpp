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
  std::int64_t vocabulary = 0;             // random tokens lie in [0, vocabulary)
  std::vector<std::int32_t> special = {};  // tokens that are never chosen, for example [CLS], [SEP] and padding
  double probability = 0.15;               // of choosing a token
  double masked = 0.8;                     // share of the chosen tokens that become mask_token
  double random = 0.1;                     // share of the chosen tokens that become a random token; the rest stay
  std::uint64_t seed = 0;
};

// Masks tokens for masked-language pretraining (Devlin et al. 2018, arXiv 1810.04805). Chooses tokens at random and replaces
// most of them by mask_token or a random token; targets are the original tokens at the chosen places and no_target elsewhere.
// Padding is never chosen. The choice is a function of (seed, sample number of the row, place), the same for any number of
// ranks.
//
//   const auto masked = std::views::transform([&](const auto& batch) { return data::mask_tokens(batch, masking); });
//   for (auto& step : run.steps(loader)) step.backward(bert, step.batches() | masked);
TextBatch mask_tokens(const TextBatch& batch, const MaskingOptions& options);
TextBatch mask_tokens(const TokenBatch& batch, const MaskingOptions& options);  // for rows without padding

}  // namespace data
}  // namespace trireme
