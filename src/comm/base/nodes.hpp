#pragma once

#include <string>
#include <vector>

namespace trireme::comm {

// Where the members of a group run. The ranks of a node with index below `lanes` each speak for one part of the data, to the
// rank with the same index on every other node.
struct Nodes {
  std::vector<std::vector<int>> members;  // group ranks by node; nodes in the order of their lowest rank
  int node = 0;                           // of this rank
  int index = 0;                          // of this rank in its node
  int lanes = 1;                          // as many as the smallest node has ranks

  int size() const { return static_cast<int>(members.size()); }
  const std::vector<int>& mine() const { return members[static_cast<std::size_t>(node)]; }
  bool is_lane() const { return index < lanes; }
  int node_of(int rank) const;
  int index_of(int rank) const;  // in its node

  // Whether node by node is rank by rank, with a complete subtree of fixed_sum's tree on each.
  bool keep_fixed_order() const;

  // The rank of `on_node` that exchanges data with `rank` of another node.
  int counterpart(int on_node, int rank) const;
};

// names[r]: what rank r calls its node; a name that is empty is a node of its own.
Nodes find_nodes(const std::vector<std::string>& names, int me);

// Every rank a node of its own.
Nodes scatter_nodes(int ranks, int me);

}  // namespace trireme::comm
