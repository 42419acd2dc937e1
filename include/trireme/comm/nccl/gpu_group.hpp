#pragma once

#include <cstdint>

#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// How collectives on GPU memory run. `staged`: data are copied to the host, go through the host's group and are copied back,
// while the host waits.
enum class GpuCollectives : std::uint8_t {
  automatic,  // NCCL; staged if a rank lacks NCCL or ranks share a GPU, and rank 0 then logs this
  nccl,
  staged,
};

// A group of the ranks of `host`, each with the GPU of the calling thread (device/cuda.hpp). Throws the same
// Error{not_available} on all ranks if a rank lacks CUDA, or lacks NCCL although NCCL was requested. NCCL refuses two ranks on
// one GPU. Collective.
//
// Collectives of this group take memory of the GPU and memory of the host. A collective on a GPU's memory goes through NCCL, on
// a stream of the group's own; a collective on the host's memory goes through `host`, as do barriers, texts, messages and
// reports of failures. On the GPU
//   - a collective begins after the work that the current stream holds at the call;
//   - Pending::wait_on_stream() makes the current stream wait for the result; the host does not wait;
//   - ranks compare their calls while the data already move, so a later call or wait throws Error{rank_mismatch};
//   - a failed rank, a passed deadline or an error of NCCL aborts the collectives under way on all ranks;
//   - fixed_sum and messages are staged;
//   - memory() is NCCL's own, registered with the group; any other memory of this GPU works too.
Group gpu_group(const Group& host, GpuCollectives collectives = GpuCollectives::automatic);

}  // namespace trireme
