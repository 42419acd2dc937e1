#include "trireme/data/text/mask_tokens.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"

namespace trireme::data {

Tensor<std::int32_t> padding_mask(std::span<const std::int64_t> lengths, std::int64_t time) {
  auto mask = Tensor<std::int32_t>::zeros({std::ssize(lengths), time});
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    require(lengths[row] >= 0 && lengths[row] <= time, "row {} has a length of {} tokens, which does not lie in [0, {}]", row,
            lengths[row], time);
    std::int32_t* const of_row = mask.data() + static_cast<std::int64_t>(row) * time;
    std::fill(of_row + lengths[row], of_row + time, 1);
  }
  return mask;
}

TextBatch mask_tokens(const TextBatch& batch, const MaskingOptions& options) {
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  require(is_share(options.probability) && is_share(options.masked) && is_share(options.random) &&
              options.masked + options.random <= 1,
          "masking takes a probability and shares in [0, 1], got {}, {} and {}", options.probability, options.masked,
          options.random);
  require(options.vocabulary > 0 && options.mask_token >= 0 && options.mask_token < options.vocabulary,
          "masking needs a vocabulary and a mask_token below it, got {} and {}", options.vocabulary, options.mask_token);
  require(batch.tokens.shape().size() == 2, "masking takes tokens [batch, time], got {}", batch.tokens.shape());
  const bool has_padding = batch.key_padding_mask.defined();
  require(!has_padding || batch.key_padding_mask.shape() == batch.tokens.shape(), "tokens {} have a padding mask {}",
          batch.tokens.shape(), has_padding ? batch.key_padding_mask.shape() : Shape());
  require(options.vocabulary <= INT32_MAX, "a vocabulary of {} tokens is too large to draw from", options.vocabulary);
  TextBatch result = batch;
  result.tokens = batch.tokens.clone();
  result.targets = Tensor<std::int32_t>::full(batch.tokens.shape(), no_target);
  const std::uint64_t stream = hash_name("mask_tokens");
  for (std::int64_t at = 0; at < batch.tokens.numel(); ++at) {
    std::int32_t& token = result.tokens.data()[at];
    if (has_padding && batch.key_padding_mask.data()[at] != 0) continue;
    if (std::ranges::find(options.special, token) != options.special.end()) continue;
    const std::int64_t sample = batch.first_sample + at / batch.time();
    const auto words =
        philox(options.seed, stream + static_cast<std::uint64_t>(sample), static_cast<std::uint64_t>(at % batch.time()));
    const auto share = [&words](std::size_t word) { return (static_cast<double>(words[word]) + 0.5) * 0x1p-32; };
    if (share(0) >= options.probability) continue;
    result.targets.data()[at] = token;
    if (share(1) < options.masked) {
      token = options.mask_token;
    } else if (share(1) < options.masked + options.random) {
      token = static_cast<std::int32_t>(share(2) * static_cast<double>(options.vocabulary));
    }
  }
  return result;
}

TextBatch mask_tokens(const TokenBatch& batch, const MaskingOptions& options) {
  require(!batch.document_starts.defined(),
          "masking takes rows of one text each: this batch has document_starts, its rows hold several documents");
  return mask_tokens(TextBatch{.tokens = batch.tokens, .first_sample = batch.first_sample}, options);
}

}  // namespace trireme::data
