#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "trireme/comm/group.hpp"

namespace trireme::comm {

enum class Kind : std::uint8_t { barrier, all_reduce, reduce_scatter, all_gather, broadcast };

// One rank's call of a collective.
struct Call {
  Kind kind = Kind::barrier;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::uint8;
  std::int32_t root = 0;
  void* data = nullptr;
  std::size_t count = 0;
  std::string_view name = {};

  std::size_t bytes() const { return count * size_of(dtype); }
};

std::string_view name_of(Kind kind);
std::string_view name_of(ReduceOp op);

std::string describe(const Call& call);  // all_reduce(sum, 1024 x float32) "layer.0.weight"

// "#12 all_reduce(...)": the call with its number in the group.
std::string describe(const Call& call, std::uint64_t sequence);

Range part_of(std::int64_t count, int rank, int ranks);  // see Group::part

}  // namespace trireme::comm
