#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "trireme/core/philox.hpp"
#include "trireme/models/generate.hpp"

namespace trireme::models {
namespace detail {

// The token at which the cumulative probability of softmax(logits / temperature) passes `uniform`.
template <typename T>
std::int32_t sample(std::span<T> logits, double temperature, double uniform) {
  const auto most_likely = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<std::int32_t>(most_likely - logits.begin());
  const auto weight = [&](T logit) { return std::exp(static_cast<double>(logit - *most_likely) / temperature); };
  double total = 0;
  for (const T logit : logits) total += weight(logit);
  double remaining = uniform * total;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    remaining -= weight(logits[token]);
    if (remaining <= 0) return static_cast<std::int32_t>(token);
  }
  return static_cast<std::int32_t>(most_likely - logits.begin());
}

// next_logits(text) gives the logits of the token after `text`.
template <typename NextLogits>
std::vector<std::int32_t> continue_text(std::vector<std::int32_t> text, const GenerateOptions& options,
                                        const NextLogits& next_logits) {
  require(!text.empty(), "generate() needs a prompt of at least one token");
  require(options.temperature >= 0, "a temperature is 0 or more, got {}", options.temperature);
  require(Tape::current() == nullptr, "generate() records nothing: call it without a tape");
  const auto start = static_cast<std::ptrdiff_t>(text.size());
  const std::uint64_t stream = hash_name("generate");
  for (std::int64_t step = 0; step < options.count; ++step) {
    const auto logits = next_logits(std::span<const std::int32_t>(text)).template to<Cpu>();
    const double uniform = philox_uniform(options.seed, stream, static_cast<std::uint64_t>(step));
    text.push_back(sample(logits.span(), options.temperature, uniform));
  }
  return {text.begin() + start, text.end()};
}

template <typename D>
Tensor<std::int32_t, D> one_row(std::span<const std::int32_t> tokens) {
  return Tensor<std::int32_t, D>::from({1, static_cast<std::int64_t>(tokens.size())}, tokens);
}

}  // namespace detail

template <typename P, typename D>
std::vector<std::int32_t> generate(const Gpt<P, D>& model, std::vector<std::int32_t> prompt, const GenerateOptions& options) {
  return detail::continue_text(std::move(prompt), options, [&](std::span<const std::int32_t> text) {
    return model.next_token_logits(
        detail::one_row<D>(text.last(std::min(text.size(), static_cast<std::size_t>(model.options().block)))));
  });
}

template <typename P, typename D>
std::vector<std::int32_t> generate(const LstmLm<P, D>& model, std::vector<std::int32_t> prompt,
                                   const GenerateOptions& options) {
  typename LstmLm<P, D>::State state;
  std::size_t read = 0;
  return detail::continue_text(std::move(prompt), options, [&](std::span<const std::int32_t> text) {
    const auto unread = text.subspan(std::exchange(read, text.size()));
    const auto logits = model.logits(detail::one_row<D>(unread), state);
    const auto rows = logits.value().reshape({static_cast<std::int64_t>(unread.size()), model.options().vocabulary});
    return rows.narrow(rows.dim(0) - 1, 1);
  });
}

}  // namespace trireme::models
