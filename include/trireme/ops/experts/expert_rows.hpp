#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct ExpertRowsOptions {
  std::int64_t experts = 0;
  // The largest number of rows that an expert takes from each group of neighbouring tokens (Lepikhin et al. 2020, arXiv
  // 2006.16668); 0: no limit. First choices go before second choices; among equal choices, earlier tokens go before later
  // tokens.
  std::int64_t capacity = 0;
  std::int64_t tokens_of_group = 0;  // needed with a capacity
};

// The rows that experts compute: a token has one row for each expert that was chosen for it,
// unless the capacity drops this choice. The rows of an expert
// are contiguous, in the order of the tokens.
struct ExpertRows {
  std::int64_t tokens = 0;
  std::int64_t choices = 0;          // of each token
  std::vector<std::int64_t> first;   // [experts + 1]: expert e has the rows [first[e], first[e + 1])
  std::vector<std::int64_t> choice;  // [rows]: token * choices + the number of the choice
  std::vector<std::int64_t> row;     // [tokens * choices]: the row of each choice; -1: dropped
  bool limited = false;              // whether there is a capacity, even if no choice exceeds it

  std::int64_t experts() const { return static_cast<std::int64_t>(first.size()) - 1; }
  std::int64_t count() const { return static_cast<std::int64_t>(choice.size()); }
};

// chosen[tokens, choices]: the expert of each choice; chosen[:, 0] are the first choices.
ExpertRows expert_rows(const Tensor<std::int64_t, Cpu>& chosen, const ExpertRowsOptions& options);

}  // namespace ops
}  // namespace trireme
