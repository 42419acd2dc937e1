#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/models/gpt.hpp"
#include "trireme/models/llama.hpp"
#include "trireme/models/lstm_lm.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

struct GenerateOptions {
  std::int64_t count = 256;  // tokens to add
  double temperature = 1;    // 0 takes the most likely token
  std::uint64_t seed = 0;
};

// From the tokens so far to the logits of the one after them: a Tensor or Variable [..., vocabulary], of which the last row
// counts, so that what a model says of all positions [1, time, vocabulary] will do.
template <typename F>
concept NextLogits = std::invocable<F&, std::span<const std::int32_t>>;

namespace detail {
// The token at which the cumulative probability of softmax(logits / temperature) passes `uniform`.
template <typename T>
TRIREME_EXPORT std::int32_t sample(std::span<const T> logits, double temperature, double uniform);

using NextToken = std::function<std::int32_t(std::span<const std::int32_t> text, double uniform)>;
std::vector<std::int32_t> continue_text(std::vector<std::int32_t> text, const GenerateOptions& options, const NextToken& next);

// On the host, in the type that probabilities are computed in.
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

// Continues `prompt`, token by token; returns the new tokens only. The same seed gives the same tokens. Of any model:
//
//   const auto next_logits = [&](std::span<const std::int32_t> tokens) {
//     const auto seen = tokens.last(std::min<std::size_t>(tokens.size(), 128));
//     return net.forward(Tensor<std::int32_t>::from({1, std::ssize(seen)}, seen));
//   };
//   const auto text = models::generate(next_logits, prompt, {.count = 200, .temperature = 0.8, .seed = 1});
//
// It is called without a tape. Logits may be -inf: such tokens are never drawn. A NaN or +inf among them is an error.
template <NextLogits F>
std::vector<std::int32_t> generate(F&& next_logits, std::vector<std::int32_t> prompt, const GenerateOptions& options) {
  return detail::continue_text(std::move(prompt), options, [&](std::span<const std::int32_t> text, double uniform) {
    const auto logits = detail::last_row(next_logits(text));
    return detail::sample(std::span(logits), options.temperature, uniform);
  });
}

// The library's language models. A GPT or Llama sees the last `block` tokens, an LSTM all of them.
template <typename P, typename D>
TRIREME_EXPORT std::vector<std::int32_t> generate(const Gpt<P, D>& model, std::vector<std::int32_t> prompt,
                                                  const GenerateOptions& options);
template <typename P, typename D>
TRIREME_EXPORT std::vector<std::int32_t> generate(const Llama<P, D>& model, std::vector<std::int32_t> prompt,
                                                  const GenerateOptions& options);
template <typename P, typename D>
TRIREME_EXPORT std::vector<std::int32_t> generate(const LstmLm<P, D>& model, std::vector<std::int32_t> prompt,
                                                  const GenerateOptions& options);

}  // namespace models
}  // namespace trireme
