#pragma once

#include <string>
#include <vector>

namespace trireme::comm {

// The nodes of a group's members. On each node, each rank with an index below `lanes` exchanges one part of the data with the
// ranks of the same index on the other nodes.
struct Nodes {
  std::vector<std::vector<int>> members;  // group ranks by node; nodes in the order of their lowest rank
  int node = 0;                           // of this rank
  int index = 0;                          // of this rank in its node
  int lanes = 1;                          // the number of ranks on the smallest node

  int size() const { return static_cast<int>(members.size()); }
  const std::vector<int>& mine() const { return members[static_cast<std::size_t>(node)]; }
  bool is_lane() const { return index < lanes; }
  int node_of(int rank) const;
  int index_of(int rank) const;  // in its node

  // Whether the ranks are numbered node by node, and each node holds a complete subtree of fixed_sum's tree.
  bool keep_fixed_order() const;

  // The rank of `on_node` that exchanges data with `rank` of another node.
  int counterpart(int on_node, int rank) const;
};

// names[r]: the name of rank r's node; a rank with an empty name is a node of its own.
Nodes find_nodes(const std::vector<std::string>& names, int me);

// Every rank a node of its own.
Nodes scatter_nodes(int ranks, int me);

}  // namespace trireme::comm
