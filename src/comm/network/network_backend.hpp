#pragma once

#include <memory>
#include <vector>

#include "comm/base/nodes.hpp"
#include "comm/network/alarm.hpp"
#include "comm/network/inter_node_collective.hpp"
#include "comm/shared/platform.hpp"
#include "comm/wire/wire.hpp"

namespace trireme::comm {

// The ranks of this node in a group that spans several, as groups of their own: for the collectives before the network and
// after it, since those of different calls overlap, and for memory.
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
  int calls = 0;  // channels of the wire's transport, both of the group's ranks: one for comparisons, one for data
  int data = 0;
  std::unique_ptr<Mail> mail;
};

// The collectives of a group that spans nodes, in two levels: the ranks of a node combine their data in memory, each for a part
// of them; ranks with the same part exchange it between nodes, so that every node sends each byte once; the ranks of a node
// share what arrived.
std::shared_ptr<Backend> make_network_backend(NetworkParts parts, const NetworkOptions& options);

}  // namespace trireme::comm
