#pragma once

#include "comm/calls/call.hpp"
#include "comm/nccl/api.hpp"

namespace trireme::comm {

// The calling rank, and the stream for the work.
struct NcclCaller {
  int rank = 0;
  int size = 1;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
};

// Whether NCCL has this collective; others go through the host.
bool nccl_has(const Call& call);

ncclDataType_t nccl_type(DType dtype);  // for types that can be reduced
ncclRedOp_t nccl_op(ReduceOp op);       // for all except fixed_sum

// Puts the work of a call into the stream.
ncclResult_t put(const NcclApi& api, const Call& call, const NcclCaller& caller);

}  // namespace trireme::comm
