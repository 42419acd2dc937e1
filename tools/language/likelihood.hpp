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
  double log = 0;  // in nats
  std::int64_t tokens = 0;
};

// Of the tokens of a text from number `first` on, at least 1, each after all before it. All ranks of a divided model call it.
template <typename Model>
Likelihood likelihood_of(const Model& model, std::span<const std::int32_t> text, std::size_t first) {
  using Tokens = trireme::Tensor<std::int32_t, typename Model::Device>;
  std::vector<std::int32_t> targets(text.begin() + 1, text.end());
  std::fill_n(targets.begin(), first - 1, trireme::ops::ignored_target);
  const auto time = static_cast<std::int64_t>(targets.size());
  const auto loss = model.loss(Tokens::from({1, time}, text.first(targets.size())), Tokens::from({1, time}, targets));
  return {.log = -static_cast<double>(loss.sum.value().item()), .tokens = std::ssize(text) - static_cast<std::int64_t>(first)};
}

// Of a text by windows of so many tokens, each of which begins `stride` tokens after the one before it and counts those alone
// that were in no window yet: the perplexity is exp(-log / tokens). A token at the beginning of a window that is new counts for
// nothing, since nothing is before it.
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
