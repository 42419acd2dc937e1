#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct ExpertRowsOptions {
  std::int64_t experts = 0;
  // At most so many rows of each group of neighbouring tokens go to one expert (Lepikhin et al. 2020, arXiv 2006.16668); 0:
  // all. First choices are taken before second ones, and of equal choices those of earlier tokens.
  std::int64_t capacity = 0;
  std::int64_t tokens_of_group = 0;  // with a capacity
};

// The rows that experts compute: one for each choice of a token, without those that found no place. The rows of an expert are
// neighbours, in the order of the tokens.
struct ExpertRows {
  std::int64_t tokens = 0;
  std::int64_t choices = 0;          // of each token
  std::vector<std::int64_t> first;   // [experts + 1]: expert e has the rows [first[e], first[e + 1])
  std::vector<std::int64_t> choice;  // [rows]: token * choices + the number of the choice
  std::vector<std::int64_t> row;     // [tokens * choices]: of a choice; -1: it has none
  bool limited = false;              // by a capacity, whether or not a choice found no place

  std::int64_t experts() const { return static_cast<std::int64_t>(first.size()) - 1; }
  std::int64_t count() const { return static_cast<std::int64_t>(choice.size()); }
};

// chosen[tokens, choices]: the expert of each choice, the first one first.
ExpertRows expert_rows(const Tensor<std::int64_t, Cpu>& chosen, const ExpertRowsOptions& options);

}  // namespace ops
}  // namespace trireme
