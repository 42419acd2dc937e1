#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "comm/calls/call.hpp"

namespace trireme::comm {

// A call as plain bytes, for the comparison between nodes.
struct WrittenCall {
  std::uint64_t sequence = 0;
  std::uint64_t count = 0;
  std::uint64_t name_hash = 0;
  std::int32_t root = 0;
  CallKind kind = CallKind::barrier;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::uint8;
  std::array<char, 65> name{};
};

WrittenCall write_call(const trireme::Call& call, std::uint64_t sequence);
bool same(const WrittenCall& a, const WrittenCall& b);
std::string describe(const WrittenCall& call);

}  // namespace trireme::comm
