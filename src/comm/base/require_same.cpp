#include "trireme/comm/base/require_same.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace trireme {
namespace {

using Entries = std::vector<Setting>;

std::string entry_text(const Entries& entries, std::size_t index) {
  return index < entries.size() ? fmt::format("{} = {}", entries[index].name, entries[index].value) : std::string("none");
}

}  // namespace

void require_same(const Group& group, std::string_view what, const Entries& entries) {
  if (group.size() == 1) return;
  const std::string operation = fmt::format("compare {}s", what);
  std::vector<Entries> all;
  constexpr auto replace = nlohmann::json::error_handler_t::replace;  // for bytes that are not UTF-8
  nlohmann::json own = nlohmann::json::array();
  for (const auto& [name, value] : entries) own.push_back({{"name", name}, {"value", value}});
  for (const std::string& text : group.gather_texts(own.dump(-1, ' ', false, replace), operation)) {
    Entries& of_rank = all.emplace_back();
    for (const auto& entry : nlohmann::json::parse(text)) {
      of_rank.emplace_back(entry.at("name").get<std::string>(), entry.at("value").get<std::string>());
    }
  }
  std::size_t longest = 0;
  for (const Entries& of_rank : all) longest = std::max(longest, of_rank.size());
  for (std::size_t index = 0; index < longest; ++index) {
    const std::string first = entry_text(all.front(), index);
    std::vector<int> differing;
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      if (entry_text(all[rank], index) != first) differing.push_back(static_cast<int>(rank));
    }
    if (differing.empty()) continue;
    const Entries& other = all[static_cast<std::size_t>(differing.front())];
    const bool in_first = index < all.front().size();
    throw Error({.code = ErrorCode::rank_mismatch,
                 .message = fmt::format("the ranks do not hold the same {}s: rank 0 has {}, rank {} has {}", what, first,
                                        fmt::join(differing, ", "), entry_text(other, index)),
                 .rank = differing.front(),
                 .operation = operation,
                 .name = in_first ? all.front()[index].name : other[index].name,
                 .wanted = first,
                 .had = entry_text(other, index),
                 .hint = "start every rank with the same program, options and files"});
  }
}

}  // namespace trireme
