#include "comm/members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

namespace trireme::comm {

Members world_members(int rank, int size) {
  Members members{.label = "world", .ranks = std::vector<int>(static_cast<std::size_t>(size)), .me = rank};
  std::iota(members.ranks.begin(), members.ranks.end(), 0);
  return members;
}

std::string list_of_ranks(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace trireme::comm
