#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trireme/comm/group.hpp"

namespace trireme::comm {

enum class Kind : std::uint8_t { barrier, all_reduce, reduce_scatter, all_gather, broadcast };

// What the ranks of one node do for a call of a group that spans several.
struct Share {
  Kind kind = Kind::barrier;
  ReduceOp op = ReduceOp::sum;
  std::span<const int> owners;  // of the data's parts: ranks of the node; of a broadcast: its root
};

// One rank's call of a collective.
struct Call {
  Kind kind = Kind::barrier;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::uint8;
  std::int32_t root = 0;
  void* data = nullptr;
  std::size_t count = 0;
  std::string_view name = {};
  std::optional<Share> share = {};  // of the work; the ranks compare the call
  std::uint64_t flight_number = 0;  // number in this rank's flight recorder

  std::size_t bytes() const { return count * size_of(dtype); }

  Kind work() const { return share ? share->kind : kind; }
  ReduceOp arithmetic() const { return share ? share->op : op; }
  int source() const { return share ? share->owners.front() : root; }
  int num_parts(int ranks) const { return share ? static_cast<int>(share->owners.size()) : ranks; }
  int owner_of(int part) const { return share ? share->owners[static_cast<std::size_t>(part)] : part; }
};

// Of `call` what a backend does where the data move elsewhere, between nodes or on GPUs: the ranks compare it.
Call comparison_of(const Call& call);

std::string_view name_of(Kind kind);
std::string_view name_of(ReduceOp op);

std::string describe(const Call& call);  // all_reduce(sum, 1024 x float32) "layer.0.weight"

// "#12 all_reduce(...)": the call with its number in the group.
std::string describe(const Call& call, std::uint64_t sequence);

Range part_of(std::int64_t count, int rank, int ranks);  // see Group::part

}  // namespace trireme::comm
