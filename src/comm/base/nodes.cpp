#include "comm/base/nodes.hpp"

#include <algorithm>
#include <bit>

namespace trireme::comm {

int Nodes::node_of(int rank) const {
  const auto holds = [rank](const std::vector<int>& ranks) { return std::ranges::find(ranks, rank) != ranks.end(); };
  return static_cast<int>(std::ranges::find_if(members, holds) - members.begin());
}

int Nodes::index_of(int rank) const {
  const auto& ranks = members[static_cast<std::size_t>(node_of(rank))];
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

bool Nodes::keep_fixed_order() const {
  const std::size_t size = mine().size();
  if (!std::has_single_bit(size)) return false;
  int next = 0;
  for (const auto& ranks : members) {
    if (ranks.size() != size) return false;
    for (const int rank : ranks) {
      if (rank != next++) return false;
    }
  }
  return true;
}

int Nodes::counterpart(int on_node, int rank) const {
  const auto& ranks = members[static_cast<std::size_t>(on_node)];
  return ranks[static_cast<std::size_t>(index_of(rank)) % ranks.size()];
}

Nodes find_nodes(const std::vector<std::string>& names, int me) {
  Nodes nodes;
  std::vector<std::string> known;
  for (int rank = 0; rank < static_cast<int>(names.size()); ++rank) {
    const std::string& name = names[static_cast<std::size_t>(rank)];
    auto found = name.empty() ? known.end() : std::ranges::find(known, name);
    if (found == known.end()) {
      known.push_back(name);
      nodes.members.emplace_back();
      found = known.end() - 1;
    }
    nodes.members[static_cast<std::size_t>(found - known.begin())].push_back(rank);
  }
  nodes.node = nodes.node_of(me);
  nodes.index = nodes.index_of(me);
  const auto smallest = std::ranges::min_element(nodes.members, {}, &std::vector<int>::size);
  nodes.lanes = static_cast<int>(smallest->size());
  return nodes;
}

Nodes scatter_nodes(int ranks, int me) { return find_nodes(std::vector<std::string>(static_cast<std::size_t>(ranks)), me); }

}  // namespace trireme::comm
