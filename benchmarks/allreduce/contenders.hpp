#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "trireme/comm/base/group.hpp"

// A way to sum the buffers of all ranks in place.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<float> buffer() = 0;
  virtual void sum(std::size_t count) = 0;  // the first `count` elements
};

// Buffers of `count` elements, by name:
//   group  ours, in Group::memory()
//   heap   ours, on buffers that the other ranks can't reach
//   fixed  ours, in Group::memory(), in the order of ReduceOp::fixed_sum
//   mpi    MPI_Allreduce
//   limit  the loads and stores of ours, without any synchronisation
//   flags  the same with two flags of each rank: its data are ready, its data are reduced
// The last two only where all ranks are on one machine.
std::vector<std::unique_ptr<Contender>> make_contenders(const trireme::Group& world, std::size_t count);
