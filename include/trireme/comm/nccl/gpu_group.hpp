#pragma once

#include <cstdint>

#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// How collectives on GPUs' memory go. Staged: what lies on a GPU is copied to the host's memory, goes through the group that
// the GPUs' group was made of, and is copied back, while the host waits.
enum class GpuCollectives : std::uint8_t {
  automatic,  // NCCL's, but staged where a rank lacks NCCL or ranks share a GPU, which rank 0 then says
  nccl,
  staged,
};

// The ranks of `host` with a GPU each, that of the calling thread (device/cuda.hpp). Collective; throws the same
// Error{not_available} on all ranks where one lacks CUDA, or the NCCL that was asked for. NCCL refuses two ranks on one GPU.
//
// One group for both kinds of memory: a collective on a GPU's memory goes through NCCL, on a stream of the group's own; one on
// the host's goes through `host`, and so do barriers, texts, messages and what ranks tell each other of failures.
// On the GPU
//   - a collective begins when what was put into the current stream before the call is done;
//   - Pending::wait_on_stream() lets the current stream wait for the result, and the host goes on;
//   - all ranks compare their calls while the data already move, so an Error{rank_mismatch} comes with a later call or wait;
//   - a rank that fails, a deadline that passes and an error of NCCL's end what is under way on all ranks;
//   - fixed_sum and messages are staged;
//   - memory() is NCCL's own, registered with the group; any other memory of this GPU works too.
Group gpu_group(const Group& host, GpuCollectives collectives = GpuCollectives::automatic);

}  // namespace trireme
