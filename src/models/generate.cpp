#include <algorithm>
#include <cmath>

#include "trireme/core/philox.hpp"
#include "trireme/models/gpt.hpp"

namespace trireme::models {
namespace {

// The token at which the cumulative probability of softmax(logits / temperature) passes `uniform`.
template <typename T>
std::int32_t sample(std::span<const T> logits, double temperature, double uniform) {
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

}  // namespace

template <typename P, typename D>
std::vector<std::int32_t> generate(const Gpt<P, D>& model, std::vector<std::int32_t> prompt, const GenerateOptions& options) {
  require(!prompt.empty(), "generate() needs a prompt of at least one token");
  require(options.temperature >= 0, "a temperature is 0 or more, got {}", options.temperature);
  const auto start = static_cast<std::ptrdiff_t>(prompt.size());
  const std::uint64_t stream = hash_name("generate");
  for (std::int64_t step = 0; step < options.count; ++step) {
    const auto time = std::min(static_cast<std::int64_t>(prompt.size()), model.options().block);
    const std::span<const std::int32_t> window(prompt.data() + prompt.size() - static_cast<std::size_t>(time),
                                               static_cast<std::size_t>(time));
    const auto logits = model.next_token_logits(Tensor<std::int32_t, D>::from({1, time}, window));
    const double uniform = philox_uniform(options.seed, stream, static_cast<std::uint64_t>(step));
    prompt.push_back(sample<typename P::Compute>(logits.span(), options.temperature, uniform));
  }
  return {prompt.begin() + start, prompt.end()};
}

template std::vector<std::int32_t> generate(const Gpt<Float32, Cpu>&, std::vector<std::int32_t>, const GenerateOptions&);
template std::vector<std::int32_t> generate(const Gpt<Float64, Cpu>&, std::vector<std::int32_t>, const GenerateOptions&);

}  // namespace trireme::models
