#pragma once

#include <memory>
#include <vector>

#include "comm/mpi_alarm.hpp"
#include "comm/mpi_calls.hpp"
#include "comm/platform.hpp"
#include "comm/process_memory.hpp"

namespace trireme::comm {

// Ranks that are processes started by mpirun.
class ProcessPlatform final : public Platform, public std::enable_shared_from_this<ProcessPlatform> {
 public:
  // `neighbours`: the world ranks of this node, by node rank.
  ProcessPlatform(std::shared_ptr<RankContext> context, std::shared_ptr<MpiAlarm> alarm, std::vector<int> neighbours);

  std::shared_ptr<Backend> make_world();

  const AddressSpace& addresses() const override { return *addresses_; }
  std::shared_ptr<Backend> make_group(Backend& parent, const Members& members) override;
  std::shared_ptr<device::MemoryResource> memory(std::shared_ptr<Backend> group) override;

 private:
  std::shared_ptr<Backend> make(const Exchange& exchange, const std::vector<int>& sharers, int me, const Members& members);

  std::shared_ptr<RankContext> context_;
  std::shared_ptr<MpiAlarm> alarm_;
  std::vector<int> neighbours_;
  std::shared_ptr<ProcessAddressSpace> addresses_;
};

}  // namespace trireme::comm
