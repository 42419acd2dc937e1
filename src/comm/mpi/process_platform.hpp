#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/base/shared_segment.hpp"
#include "comm/mpi/mpi_mail.hpp"
#include "comm/mpi/mpi_transport.hpp"
#include "comm/mpi/process_memory.hpp"
#include "comm/shared/platform.hpp"
#include "comm/wire/wire_schedule.hpp"
#include "trireme/comm/wire/algorithm.hpp"

namespace trireme::comm {

// Ranks that are processes started by mpirun.
class ProcessPlatform final : public Platform, public std::enable_shared_from_this<ProcessPlatform> {
 public:
  // `neighbours`: the world ranks of this node, by node rank.
  ProcessPlatform(MpiMailParts parts, std::shared_ptr<MpiTransport> transport, std::vector<int> neighbours,
                  Algorithm algorithm);

  std::shared_ptr<Backend> make_world();

  const AddressSpace& addresses() const override { return *addresses_; }
  std::shared_ptr<Backend> make_group(const std::shared_ptr<Backend>& parent, const Members& members) override;
  std::shared_ptr<device::MemoryResource> memory(std::shared_ptr<Backend> group) override;

 private:
  std::shared_ptr<Backend> make(const Exchange& exchange, const std::vector<int>& sharers, int me, const Members& members);
  std::shared_ptr<Backend> make_node_group(const Members& members, const std::shared_ptr<SharedSegment>& segment,
                                           std::size_t control, std::unique_ptr<Mail> mail);
  bool is_neighbour(int world_rank) const;
  int node_rank(int world_rank) const;  // -1: on another node

  MpiMailParts parts_;
  std::shared_ptr<MpiTransport> transport_;  // the wire's
  std::vector<int> neighbours_;
  Algorithm algorithm_;
  std::optional<LinkModel> link_;  // between the job's nodes; nothing until it is measured
  std::shared_ptr<ProcessAddressSpace> addresses_;
};

}  // namespace trireme::comm
