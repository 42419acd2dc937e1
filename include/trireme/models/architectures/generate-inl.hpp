#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/models/architectures/generate.hpp"
#include "trireme/nn/attention/key_value_cache.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {
namespace detail {

// How many tokens the model sees at most. A longer prompt is an error.
inline std::int64_t checked_context(std::span<const TokenText> prompts, const GenerateOptions& options, std::int64_t block) {
  require(options.context >= 0 && options.context <= block,
          "generate(): a context of {} tokens, but the model has {} positions", options.context, block);
  const std::int64_t context = options.context == 0 ? block : options.context;
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    require(std::cmp_less_equal(prompts[row].size(), context),
            "generate(): prompt {} has {} tokens, but the model sees {} at most: give the last {} of them", row,
            prompts[row].size(), context, context);
  }
  return context;
}

// Generates with a key-value cache.
template <typename Model>
std::vector<TokenText> continue_by(const Model& model, std::span<const TokenText> prompts, const GenerateOptions& options) {
  using D = typename Model::Device;
  const std::int64_t context = checked_context(prompts, options, model.options().block);
  std::size_t longest = 1;
  for (const TokenText& prompt : prompts) longest = std::max(longest, prompt.size());
  if (prompts.empty()) return {};
  const std::int64_t most = static_cast<std::int64_t>(longest) + std::clamp<std::int64_t>(options.count - 1, 0, context);
  nn::KeyValueCache<typename Model::T, D> cache(std::ssize(prompts), std::min(context, most));
  const auto next = [&](std::span<const OpenText> texts) {
    TokenText tokens(texts.size());
    const auto read = [&](std::span<const nn::NewTokens> parts, std::span<const std::size_t> places) {
      const auto logits = model.next_token_logits(parts, cache);
      for (std::size_t row = 0; row < places.size(); ++row) {
        const auto of_row = last_row(logits.narrow(static_cast<std::int64_t>(row), 1));
        tokens[places[row]] = sample(std::span(of_row), options, texts[places[row]].uniform);
      }
    };
    std::vector<nn::NewTokens> single;  // texts with only one unread token
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < texts.size(); ++place) {
      const auto sequence = static_cast<std::int64_t>(texts[place].row);
      const auto& text = texts[place].text;
      std::span<const std::int32_t> unread;
      if (cache.length(sequence) < context) {
        unread = text.subspan(static_cast<std::size_t>(cache.length(sequence)));
      } else {
        cache.clear(sequence);
        unread = text.last(static_cast<std::size_t>(context));
      }
      const nn::NewTokens part{.sequence = sequence, .tokens = unread};
      if (unread.size() == 1) {
        single.push_back(part);
        places.push_back(place);
      } else {
        read({&part, 1}, {&place, 1});
      }
    }
    if (!single.empty()) read(single, places);
    return tokens;
  };
  return continue_texts({prompts.begin(), prompts.end()}, options, next);
}

// Generates without a cache: reads the whole text again for each token.
template <typename Model>
std::vector<TokenText> continue_anew(const Model& model, std::span<const TokenText> prompts, const GenerateOptions& options) {
  const auto context = static_cast<std::size_t>(checked_context(prompts, options, model.options().block));
  const auto next = [&](std::span<const OpenText> texts) {
    TokenText tokens;
    for (const OpenText& each : texts) {
      const auto seen = each.text.last(std::min(each.text.size(), context));
      const auto read = Tensor<std::int32_t, typename Model::Device>::from({1, std::ssize(seen)}, seen);
      const auto logits = last_row(model.next_token_logits(read));
      tokens.push_back(sample(std::span(logits), options, each.uniform));
    }
    return tokens;
  };
  return continue_texts({prompts.begin(), prompts.end()}, options, next);
}

}  // namespace detail

template <typename P, typename D>
std::vector<TokenText> generate(const GptNeoX<P, D>& model, std::span<const TokenText> prompts,
                                const GenerateOptions& options) {
  return detail::continue_anew(model, prompts, options);
}

template <typename P, typename D>
std::vector<TokenText> generate(const Gpt<P, D>& model, std::span<const TokenText> prompts, const GenerateOptions& options) {
  return detail::continue_by(model, prompts, options);
}

template <typename P, typename D>
std::vector<TokenText> generate(const Llama<P, D>& model, std::span<const TokenText> prompts, const GenerateOptions& options) {
  return detail::continue_by(model, prompts, options);
}

template <typename P, typename D>
TokenText generate(const LstmLm<P, D>& model, TokenText prompt, const GenerateOptions& options) {
  typename LstmLm<P, D>::State state;
  std::size_t read = 0;
  const auto next_logits = [&](std::span<const std::int32_t> text) {
    const auto unread = text.subspan(std::exchange(read, text.size()));
    return model.logits(Tensor<std::int32_t, D>::from({1, std::ssize(unread)}, unread), state);
  };
  return generate(next_logits, std::move(prompt), options);
}

}  // namespace models
}  // namespace trireme
