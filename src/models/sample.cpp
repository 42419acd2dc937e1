#include <algorithm>
#include <cmath>

#include "trireme/core/philox.hpp"
#include "trireme/models/generate.hpp"

namespace trireme::models::detail {

template <typename T>
std::int32_t sample(std::span<const T> logits, double temperature, double uniform) {
  const auto most_likely = std::max_element(logits.begin(), logits.end());
  for (const T logit : logits) {
    require(!std::isnan(logit) && std::isfinite(*most_likely),
            "generate() got {} among the logits of the next token: the model has diverged, or its weights are not loaded",
            std::isnan(logit) ? "a NaN" : "no finite number or an infinity");
  }
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
template std::int32_t sample(std::span<const float>, double, double);
template std::int32_t sample(std::span<const double>, double, double);

std::vector<std::int32_t> continue_text(std::vector<std::int32_t> text, const GenerateOptions& options, const NextToken& next) {
  require(!text.empty(), "generate() needs a prompt of at least one token");
  require(options.count >= 0, "generate() adds 0 or more tokens, got a count of {}", options.count);
  require(options.temperature >= 0, "a temperature is 0 or more, got {}", options.temperature);
  require(Tape::current() == nullptr, "generate() records nothing: call it without a tape");
  const auto start = static_cast<std::ptrdiff_t>(text.size());
  const std::uint64_t stream = hash_name("generate");
  for (std::int64_t step = 0; step < options.count; ++step) {
    text.push_back(next(text, philox_uniform(options.seed, stream, static_cast<std::uint64_t>(step))));
  }
  return {text.begin() + start, text.end()};
}

}  // namespace trireme::models::detail
