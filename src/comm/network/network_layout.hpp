#pragma once

#include <vector>

#include "comm/base/nodes.hpp"
#include "comm/calls/call.hpp"
#include "comm/wire/wire_schedule.hpp"
#include "comm/wire/wire_transfer.hpp"

namespace trireme::comm {

// The work of one rank in each level of a collective: a call in its node before the network, the transfers between nodes, and a
// call in its node afterwards.
class NetworkLayout {
 public:
  NetworkLayout(const Nodes& nodes, int me, int ranks);

  Call inward(const Call& call) const;
  Call outward(const Call& call) const;
  ChunkedSchedule schedule(const Call& call, Algorithm algorithm) const;

  // The elements of a call that this rank reduces with its counterparts of other nodes.
  Range lane_range(const Call& call) const;

 private:
  ChunkedSchedule all_reduce_schedule(const Call& call, Algorithm algorithm) const;
  ChunkedSchedule scatter_schedule(const Call& call) const;
  ChunkedSchedule gather_schedule(const Call& call) const;
  ChunkedSchedule broadcast_schedule(const Call& call) const;
  std::vector<int> lane_peers() const;

  Nodes nodes_;
  int me_;
  int ranks_;
  std::vector<int> lane_owners_;  // node index by lane
  std::vector<int> part_owners_;  // node index by group rank: the rank of this node that handles that rank's part
};

}  // namespace trireme::comm
