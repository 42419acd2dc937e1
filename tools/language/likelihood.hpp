#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/tensor/tensor.hpp"

struct Likelihood {
  double log = 0;  // the log likelihood in nats
  std::int64_t tokens = 0;
};

// The likelihood of the tokens of a text from index `first` on, each given all tokens before it. `first` is 1 or more. All
// ranks of a divided model must call it.
template <typename Model>
Likelihood likelihood_of(const Model& model, std::span<const std::int32_t> text, std::size_t first) {
  using Tokens = trireme::Tensor<std::int32_t, typename Model::Device>;
  std::vector<std::int32_t> targets(text.begin() + 1, text.end());
  std::fill_n(targets.begin(), first - 1, trireme::ops::ignored_target);
  const auto time = static_cast<std::int64_t>(targets.size());
  const auto loss = model.loss(Tokens::from({1, time}, text.first(targets.size())), Tokens::from({1, time}, targets));
  return {.log = -static_cast<double>(loss.sum.value().item()), .tokens = std::ssize(text) - static_cast<std::int64_t>(first)};
}

// The likelihood of a text by windows of `window` tokens. Each window begins `stride` tokens after the one before it, and
// counts only tokens that were in no earlier window. The perplexity is exp(-log / tokens). A new token at the beginning of a
// window is not counted, since no token is before it.
template <typename Model>
Likelihood likelihood_by_windows(const Model& model, std::span<const std::int32_t> text, std::size_t window,
                                 std::size_t stride) {
  Likelihood all;
  std::size_t seen = 0;
  for (std::size_t begin = 0; seen < text.size(); begin += stride) {
    const std::size_t end = std::min(begin + window, text.size());
    const std::size_t first = std::max(seen, begin + 1);
    if (first < end) {
      const Likelihood part = likelihood_of(model, text.subspan(begin, end - begin), first - begin);
      all.log += part.log;
      all.tokens += part.tokens;
    }
    seen = end;
  }
  return all;
}
