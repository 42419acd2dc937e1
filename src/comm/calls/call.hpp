#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"

namespace trireme::comm {

// The work of one node's ranks for a call of a group that spans several nodes.
struct Share {
  CallKind kind = CallKind::barrier;
  ReduceOp op = ReduceOp::sum;
  std::span<const int> owners;  // the node's ranks that own the data's parts; for a broadcast its root
};

// A call as a backend gets it.
struct Call : trireme::Call {
  Call() = default;
  Call(const trireme::Call& call) : trireme::Call(call) {}

  std::optional<Share> share = {};  // the work, if it differs from the call; ranks compare the call
  std::uint64_t flight_number = 0;  // number in this rank's flight recorder

  CallKind work() const { return share ? share->kind : kind; }
  ReduceOp arithmetic() const { return share ? share->op : op; }
  int source() const { return share ? share->owners.front() : peer; }
  int num_parts(int ranks) const { return share ? static_cast<int>(share->owners.size()) : ranks; }
  int owner_of(int part) const { return share ? share->owners[static_cast<std::size_t>(part)] : part; }
};

// A call that only compares `call` between the ranks, while the data move elsewhere, between nodes or on GPUs.
Call comparison_of(const Call& call);

// Writes the name, padded with zeros. A name that does not fit is shortened in the middle and gets a hash, so that different
// names stay different: "model.layers.0.very...projection.weight #1a2b3c4d". At least 40 characters fit.
void write_name(std::string_view name, std::span<char> space);

// "#12 all_reduce(...)": the call with its number in the group.
TRIREME_EXPORT std::string describe(const trireme::Call& call, std::uint64_t sequence);

}  // namespace trireme::comm
