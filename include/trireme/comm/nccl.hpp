#pragma once

#include "trireme/comm/group.hpp"

namespace trireme {

// The ranks of `host` with a GPU each, that of the calling thread (device/cuda.hpp). Collective; throws Error{not_available}
// where a rank lacks CUDA or NCCL. NCCL refuses two ranks on one GPU.
//
// One group for both kinds of memory: a collective on a GPU's memory goes through NCCL, on a stream of the group's own; one on
// the host's goes through `host`, and so do barriers, texts, messages and what ranks tell each other of failures.
// On the GPU
//   - a collective begins when what was put into the current stream before the call is done;
//   - Pending::order_before(stream) lets a stream wait for the result, and the host goes on;
//   - all ranks compare their calls while the data already move, so an Error{rank_mismatch} comes with a later call or wait;
//   - a rank that fails, a deadline that passes and an error of NCCL's end what is under way on all ranks;
//   - fixed_sum and messages are staged: their data travel through the host's memory;
//   - memory() is NCCL's own, registered with the group; any other memory of this GPU works too.
Group nccl_group(const Group& host);

}  // namespace trireme
