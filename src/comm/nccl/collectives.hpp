#pragma once

#include "comm/calls/call.hpp"
#include "comm/nccl/api.hpp"

namespace trireme::comm {

// Who calls, and where the work goes.
struct NcclCaller {
  int rank = 0;
  int size = 1;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
};

// Whether NCCL has it; what it has not goes through the host.
bool nccl_has(const Call& call);

ncclDataType_t nccl_type(DType dtype);  // of reducible ones
ncclRedOp_t nccl_op(ReduceOp op);       // of all but fixed_sum

// Puts the work of a call into the stream.
ncclResult_t put(const NcclApi& api, const Call& call, const NcclCaller& caller);

}  // namespace trireme::comm
