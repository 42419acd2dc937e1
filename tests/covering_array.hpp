#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace trireme::tests {

// A value of a factor, both by their numbers.
struct Choice {
  std::size_t factor = 0;
  std::size_t value = 0;

  friend auto operator<=>(const Choice&, const Choice&) = default;
};
using ChoicePair = std::pair<Choice, Choice>;  // the lower factor first

using Combination = std::vector<std::size_t>;  // the value of each factor

// A small set of combinations in which every pair of values of two factors occurs, except the `excluded` pairs, which never
// occur (a pairwise covering array, found greedily; the same in every run). No excluded pair contains value 0 of a factor, so
// that each pair can be completed. sizes: the number of values of each factor.
std::vector<Combination> covering_array(std::span<const std::size_t> sizes, const std::set<ChoicePair>& excluded);

}  // namespace trireme::tests
