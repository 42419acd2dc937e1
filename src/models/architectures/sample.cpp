#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "trireme/core/philox.hpp"
#include "trireme/models/architectures/generate.hpp"

namespace trireme::models::detail {
namespace {

void check(const std::vector<TokenText>& prompts, const GenerateOptions& options) {
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    require(!prompts[row].empty(), "generate() needs a prompt of at least one token, number {} has none", row);
  }
  require(options.count >= 0, "generate() adds 0 or more tokens, got a count of {}", options.count);
  require(options.temperature >= 0, "a temperature is 0 or more, got {}", options.temperature);
  require(options.top_k >= 0, "top_k is above 0, or 0 for all tokens, got {}", options.top_k);
  require(options.top_p > 0 && options.top_p <= 1, "top_p lies in (0, 1], got {}", options.top_p);
  require(Tape::current() == nullptr, "generate() records nothing: call it without a tape");
}

// Keeps the top_k largest weights, and those equal to the last of them; sets the others to 0.
void keep_top_k(std::vector<double>& weights, std::int64_t top_k) {
  if (top_k == 0 || std::cmp_greater_equal(top_k, weights.size())) return;
  std::vector<double> sorted = weights;
  const auto last = sorted.begin() + (top_k - 1);
  std::nth_element(sorted.begin(), last, sorted.end(), std::greater<>());
  for (double& weight : weights) {
    if (weight < *last) weight = 0;
  }
}

// Keeps the most likely tokens that together have top_p of the total, the first of equal ones; sets the others to 0.
void keep_top_p(std::vector<double>& weights, double top_p) {
  if (top_p == 1) return;
  std::vector<std::size_t> order;
  for (std::size_t token = 0; token < weights.size(); ++token) {
    if (weights[token] > 0) order.push_back(token);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  double missing = top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (const std::size_t token : order) {
    if (missing <= 0) {
      weights[token] = 0;
    } else {
      missing -= weights[token];
    }
  }
}

}  // namespace

template <typename T>
std::int32_t sample(std::span<const T> logits, const GenerateOptions& options, double uniform) {
  const auto most_likely = std::max_element(logits.begin(), logits.end());
  for (const T logit : logits) {
    require(!std::isnan(logit) && std::isfinite(*most_likely),
            "generate() got {} among the logits of the next token: the model has diverged, or its weights are not loaded",
            std::isnan(logit) ? "a NaN" : "no finite number or an infinity");
  }
  for (const std::int32_t token : options.stop) {
    require(token >= 0 && std::cmp_less(token, logits.size()), "generate(): the stop token {} is none of {}", token,
            logits.size());
  }
  if (options.temperature == 0) return static_cast<std::int32_t>(most_likely - logits.begin());
  std::vector<double> weights(logits.size());
  std::transform(logits.begin(), logits.end(), weights.begin(),
                 [&](T logit) { return std::exp(static_cast<double>(logit - *most_likely) / options.temperature); });
  keep_top_k(weights, options.top_k);
  keep_top_p(weights, options.top_p);
  double remaining = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t token = 0; token < weights.size(); ++token) {
    remaining -= weights[token];
    if (weights[token] > 0 && remaining <= 0) return static_cast<std::int32_t>(token);
  }
  return static_cast<std::int32_t>(most_likely - logits.begin());
}
template std::int32_t sample(std::span<const float>, const GenerateOptions&, double);
template std::int32_t sample(std::span<const double>, const GenerateOptions&, double);

std::vector<TokenText> continue_texts(std::vector<TokenText> texts, const GenerateOptions& options, const NextTokens& next) {
  check(texts, options);
  std::vector<std::size_t> starts, open;
  for (std::size_t row = 0; row < texts.size(); ++row) {
    starts.push_back(texts[row].size());
    open.push_back(row);
  }
  const std::uint64_t stream = hash_name("generate");
  for (std::int64_t step = 0; step < options.count && !open.empty(); ++step) {
    std::vector<OpenText> of_step;
    for (const std::size_t row : open) {
      const std::uint64_t index = ((options.first_row + row) << 32) + static_cast<std::uint64_t>(step);
      of_step.push_back({.row = row, .text = texts[row], .uniform = philox_uniform(options.seed, stream, index)});
    }
    const TokenText tokens = next(of_step);
    for (std::size_t place = 0; place < tokens.size(); ++place) {
      texts[of_step[place].row].push_back(tokens[place]);
      if (options.on_token) options.on_token(of_step[place].row, tokens[place]);
    }
    std::erase_if(open,
                  [&](std::size_t row) { return std::ranges::find(options.stop, texts[row].back()) != options.stop.end(); });
  }
  for (std::size_t row = 0; row < texts.size(); ++row) {
    texts[row].erase(texts[row].begin(), texts[row].begin() + static_cast<std::ptrdiff_t>(starts[row]));
  }
  return texts;
}

}  // namespace trireme::models::detail
