#include "comm/calls/members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

namespace trireme::comm {

std::vector<int> ranks_below(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Members world_members(int rank, int size) { return {.label = "world", .ranks = ranks_below(size), .me = rank}; }

std::string list_of_ranks(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace trireme::comm
