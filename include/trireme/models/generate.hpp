#pragma once

#include <vector>

#include "trireme/models/gpt.hpp"
#include "trireme/models/lstm_lm.hpp"

namespace trireme::models {

struct GenerateOptions {
  std::int64_t count = 256;  // tokens to add
  double temperature = 1;    // 0 takes the most likely token
  std::uint64_t seed = 0;
};

// Continues `prompt`, token by token; returns the new tokens only. A GPT sees the last `block` tokens, an LSTM all of them.
template <typename P, typename D>
std::vector<std::int32_t> generate(const Gpt<P, D>& model, std::vector<std::int32_t> prompt, const GenerateOptions& options);
template <typename P, typename D>
std::vector<std::int32_t> generate(const LstmLm<P, D>& model, std::vector<std::int32_t> prompt, const GenerateOptions& options);

}  // namespace trireme::models
