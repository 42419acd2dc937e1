#include "comm/calls/mismatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace trireme::comm {

Error mismatch_error(const std::vector<std::string>& calls, const Members& members, std::uint64_t sequence) {
  std::vector<std::pair<std::string, std::vector<int>>> callers;  // by call, in the order of their lowest ranks
  for (int rank = 0; rank < members.size(); ++rank) {
    const std::string& call = calls[static_cast<std::size_t>(rank)];
    if (call.empty()) continue;
    auto found = std::ranges::find(callers, call, &std::pair<std::string, std::vector<int>>::first);
    if (found == callers.end()) found = callers.insert(callers.end(), {call, {}});
    found->second.push_back(members.ranks[static_cast<std::size_t>(rank)]);
  }
  std::string text;
  for (const auto& [call, ranks] : callers) {
    text += fmt::format("{}{} called {}", text.empty() ? "" : ", ", list_of_ranks(ranks), call);
  }
  return Error({.code = ErrorCode::rank_mismatch,
                .message = fmt::format("the ranks of group \"{}\" disagree: {}", members.label, text),
                .sequence = sequence,
                .hint = "all ranks must call the same collectives in the same order with the same counts and names"});
}

}  // namespace trireme::comm
