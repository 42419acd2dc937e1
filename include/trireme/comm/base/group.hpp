#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "trireme/core/collectives.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/device/memory.hpp"

namespace trireme TRIREME_EXPORT {

class Group;
namespace comm {
class Backend;  // the interface of backends; for src/comm only
std::shared_ptr<Backend> backend_of(const Group& group);
}  // namespace comm

// Ranks that call collectives together. Copies refer to the same group. If the ranks' calls differ, every rank throws an
// Error{rank_mismatch} that names the ranks and the operations. A collective that makes no progress until the deadline throws
// Error{timeout}. If a rank fails or leaves, the other ranks throw Error{peer_failed} with that rank's message.
class Group final : public Collectives {
 public:
  explicit Group(std::shared_ptr<comm::Backend> backend);

  // Ranks with the same colour form a group, ordered by (key, rank). Collective.
  Group split(int color, int key, std::string_view name) const;

  // Memory on which collectives work without copies: a segment that the ranks of a node share, or the heap if there is no such
  // segment. allocate() of this memory is collective.
  std::shared_ptr<device::MemoryResource> memory() const;

  // Bytes that this rank has sent to other nodes in this group's collectives and messages.
  std::uint64_t bytes_sent() const;

  // Whether all ranks run on one node and reach each other's memory().
  bool on_one_node() const;

  // The ranks of each node, in ascending order; nodes in the order of their lowest ranks.
  std::vector<std::vector<int>> nodes() const;

  // Waits until done() returns true, for example for this rank's GPU. done() must not block; after it has returned true, it
  // must keep returning true. If another rank fails meanwhile, wait_until() throws the error of that rank, as a collective
  // does. At the deadline it throws Error{timeout} with `name`.
  void wait_until(const std::function<bool()>& done, std::string_view name) const;

 private:
  friend std::shared_ptr<comm::Backend> comm::backend_of(const Group& group);

  Pending start(const Call& call) const override;
  int rank_in_job() const override;

  std::shared_ptr<comm::Backend> backend_;
};

namespace comm {
void progress();  // advances every collective that this rank has under way, without waiting
}

}  // namespace trireme
