#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/architectures/gpt_neox.hpp"
#include "trireme/models/architectures/llama.hpp"
#include "trireme/models/architectures/lstm_lm.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

// Names are as in generate() of Hugging Face transformers, where do_sample = False has the effect of a temperature of 0.
struct GenerateOptions {
  std::int64_t count = 256;  // tokens to add, at most
  double temperature = 1;    // 0 takes the most likely token
  // Above 0: draws only from the top_k most likely tokens, and from tokens that are as likely as the last of these.
  std::int64_t top_k = 0;
  // Below 1: draws only from the most likely tokens that together have this probability (Holtzman et al. 2020, arXiv
  // 1904.09751), after temperature and top_k.
  double top_p = 1;
  std::vector<std::int32_t> stop = {};  // a text ends after the first of these tokens
  std::uint64_t seed = 0;
  // Number of the first prompt; a text's random numbers depend on the seed, the number of its prompt and the step.
  std::uint64_t first_row = 0;
  // For Gpt, GptNeoX and Llama: the number of tokens, counted from the end of a text, that the model sees at most; 0: the
  // model's `block`. When a text is longer, the whole context is read again for each token, which is much slower.
  std::int64_t context = 0;
  // Called with the index of a prompt and its new token, as soon as the token is drawn.
  std::function<void(std::size_t row, std::int32_t token)> on_token = {};
};

using TokenText = std::vector<std::int32_t>;

// A function from the tokens so far to the logits of the next token: a Tensor or Variable [..., vocabulary]. Only the last row
// is used, so the logits of all positions [1, time, vocabulary] are fine.
template <typename F>
concept NextLogits = std::invocable<F&, std::span<const std::int32_t>>;

namespace detail {
// Draws a token: applies temperature, top_k and top_p, then takes the token at which the cumulative probability passes
// `uniform`.
template <typename T>
TRIREME_EXPORT std::int32_t sample(std::span<const T> logits, const GenerateOptions& options, double uniform);

// A text that has not ended, and the random number for its next token.
struct OpenText {
  std::size_t row = 0;
  std::span<const std::int32_t> text = {};
  double uniform = 0;
};
using NextTokens = std::function<TokenText(std::span<const OpenText>)>;
std::vector<TokenText> continue_texts(std::vector<TokenText> texts, const GenerateOptions& options, const NextTokens& next);

// The last row of logits on the host, in the type in which probabilities are computed.
template <typename T, typename D>
std::vector<Accumulate<T>> last_row(const Tensor<T, D>& logits) {
  require(logits.defined() && logits.shape().size() > 0 && logits.numel() > 0,
          "generate() needs logits [..., vocabulary] of the next token, not {}",
          logits.defined() ? "those of shape " + logits.shape().str() : "an undefined tensor");
  const std::int64_t rows = logits.shape().rows();
  const auto last = logits.reshape({rows, logits.shape().back()}).narrow(rows - 1, 1).template to<Cpu>();
  return {last.span().begin(), last.span().end()};
}
template <typename T, typename D>
std::vector<Accumulate<T>> last_row(const Variable<T, D>& logits) {
  return last_row(logits.value());
}
}  // namespace detail

// Continues `prompt`, token by token; returns only the new tokens. The same seed gives the same tokens. With any model:
//
//   const auto next_logits = [&](std::span<const std::int32_t> tokens) {
//     const auto seen = tokens.last(std::min<std::size_t>(tokens.size(), 128));
//     return net.forward(Tensor<std::int32_t>::from({1, std::ssize(seen)}, seen));
//   };
//   const auto text = models::generate(next_logits, prompt, {.count = 200, .temperature = 0.8, .seed = 1});
//
// next_logits is called without a tape. A token with a logit of -inf is never drawn. A logit of NaN or +inf is an error.
template <NextLogits F>
TokenText generate(F&& next_logits, TokenText prompt, const GenerateOptions& options) {
  const auto next = [&](std::span<const detail::OpenText> texts) {
    const auto logits = detail::last_row(next_logits(texts.front().text));
    return TokenText{detail::sample(std::span(logits), options, texts.front().uniform)};
  };
  return detail::continue_texts({std::move(prompt)}, options, next).front();
}

// For the library's language models. A GPT or Llama keeps the keys and values of the tokens that it has read
// (nn::KeyValueCache). So a step costs one pass over the weights, for any length of text and any number of prompts. The
// prompts of a batch may differ in length; each prompt gets the text that it would get alone. A prompt has at most `block`
// tokens. All ranks of a divided model must call generate(), and all get the same texts.
template <typename P, typename D>
TRIREME_EXPORT std::vector<TokenText> generate(const Gpt<P, D>& model, std::span<const TokenText> prompts,
                                               const GenerateOptions& options);
template <typename P, typename D>
TRIREME_EXPORT std::vector<TokenText> generate(const Llama<P, D>& model, std::span<const TokenText> prompts,
                                               const GenerateOptions& options);
// A GPT-NeoX has no cache: it reads the whole text for each token.
template <typename P, typename D>
TRIREME_EXPORT std::vector<TokenText> generate(const GptNeoX<P, D>& model, std::span<const TokenText> prompts,
                                               const GenerateOptions& options);
template <typename P, typename D>
TokenText generate(const Gpt<P, D>& model, TokenText prompt, const GenerateOptions& options) {
  return generate(model, std::vector<TokenText>{std::move(prompt)}, options).front();
}
template <typename P, typename D>
TokenText generate(const Llama<P, D>& model, TokenText prompt, const GenerateOptions& options) {
  return generate(model, std::vector<TokenText>{std::move(prompt)}, options).front();
}
template <typename P, typename D>
TokenText generate(const GptNeoX<P, D>& model, TokenText prompt, const GenerateOptions& options) {
  return generate(model, std::vector<TokenText>{std::move(prompt)}, options).front();
}
template <typename P, typename D>
TRIREME_EXPORT TokenText generate(const LstmLm<P, D>& model, TokenText prompt, const GenerateOptions& options);

}  // namespace models
}  // namespace trireme
