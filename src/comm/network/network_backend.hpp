#pragma once

#include <memory>
#include <vector>

#include "comm/base/nodes.hpp"
#include "comm/network/alarm.hpp"
#include "comm/network/inter_node_collective.hpp"
#include "comm/shared/platform.hpp"
#include "comm/wire/wire.hpp"

namespace trireme::comm {

// The ranks of this node in a group that spans nodes, as groups of their own: one for the collectives before the network and
// one for those after it, since different calls overlap, and one for memory.
struct NodeGroups {
  std::shared_ptr<Backend> inward;
  std::shared_ptr<Backend> outward;
  std::shared_ptr<Backend> memory;
};

struct NetworkOptions {
  Algorithm algorithm = Algorithm::automatic;
  LinkModel link;
};

struct NetworkParts {
  std::shared_ptr<RankContext> context;
  std::shared_ptr<Platform> platform;
  std::shared_ptr<Alarm> alarm;
  std::shared_ptr<Wire> wire;
  Members members;
  Nodes nodes;
  NodeGroups node_groups;
  int calls = 0;  // two channels of the wire's transport between the group's ranks: for comparisons, and for data
  int data = 0;
  std::unique_ptr<Mail> mail;
};

// The collectives of a group that spans nodes, in three steps: the ranks of a node combine their data in memory, each for one
// part; ranks with the same part exchange it between nodes, so that every node sends each byte once; the ranks of a node share
// the results.
std::shared_ptr<Backend> make_network_backend(NetworkParts parts, const NetworkOptions& options);

}  // namespace trireme::comm
