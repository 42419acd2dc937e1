#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/call.hpp"
#include "comm/mpi_calls.hpp"

namespace trireme::comm {

// A call as plain bytes, for the comparison between ranks.
struct WrittenCall {
  std::uint64_t count = 0;
  std::uint64_t name_hash = 0;
  std::int32_t root = 0;
  Kind kind = Kind::barrier;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::uint8;
  std::array<char, 65> name{};
};

WrittenCall write_call(const Call& call);
bool same(const WrittenCall& a, const WrittenCall& b);
std::string describe(const WrittenCall& call, std::uint64_t sequence);

std::vector<MPI_Request> start_collective(const Call& call, int ranks, MPI_Comm communicator);
void finish_collective(const Call& call, int ranks);  // what MPI leaves to do: the division of a mean

}  // namespace trireme::comm
