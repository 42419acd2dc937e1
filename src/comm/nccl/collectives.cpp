#include "comm/nccl/collectives.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace trireme::comm {
namespace {

std::byte* at(const Call& call, std::int64_t element) {
  return static_cast<std::byte*>(call.data) + static_cast<std::size_t>(element) * size_of(call.dtype);
}

Range part(const Call& call, int rank, int size) { return part_of(static_cast<std::int64_t>(call.count), rank, size); }

// NCCL's own reduce-scatter and all-gather need equal parts.
bool has_equal_parts(const Call& call, int size) {
  for (int rank = 0; rank < size; ++rank) {
    if (part(call, rank, size).count() * size != static_cast<std::int64_t>(call.count)) return false;
  }
  return true;
}

// Calls action(part, owner) for each part; NCCL takes them as one operation.
template <typename Action>
ncclResult_t for_each_part(const NcclApi& api, const Call& call, const NcclCaller& caller, Action action) {
  if (const ncclResult_t result = api.group_start(); result != ncclSuccess) return result;
  ncclResult_t first_error = ncclSuccess;
  for (int owner = 0; owner < caller.size; ++owner) {
    const Range range = part(call, owner, caller.size);
    if (range.count() == 0) continue;
    const ncclResult_t result = action(range, owner);
    if (first_error == ncclSuccess && result != ncclInProgress) first_error = result;
  }
  const ncclResult_t end = api.group_end();
  return first_error == ncclSuccess ? end : first_error;
}

ncclResult_t put_reduce_scatter(const NcclApi& api, const Call& call, const NcclCaller& caller) {
  const ncclDataType_t type = nccl_type(call.dtype);
  const ncclRedOp_t op = nccl_op(call.op);
  if (has_equal_parts(call, caller.size)) {
    const Range mine = part(call, caller.rank, caller.size);
    return api.reduce_scatter(call.data, at(call, mine.begin), static_cast<std::size_t>(mine.count()), type, op,
                              caller.communicator, caller.stream);
  }
  return for_each_part(api, call, caller, [&](Range range, int owner) {
    std::byte* data = at(call, range.begin);
    return api.reduce(data, data, static_cast<std::size_t>(range.count()), type, op, owner, caller.communicator, caller.stream);
  });
}

ncclResult_t put_all_gather(const NcclApi& api, const Call& call, const NcclCaller& caller) {
  const auto bytes = [&call](Range range) { return static_cast<std::size_t>(range.count()) * size_of(call.dtype); };
  if (has_equal_parts(call, caller.size)) {
    const Range mine = part(call, caller.rank, caller.size);
    return api.all_gather(at(call, mine.begin), call.data, bytes(mine), ncclUint8, caller.communicator, caller.stream);
  }
  return for_each_part(api, call, caller, [&](Range range, int owner) {
    std::byte* data = at(call, range.begin);
    return api.broadcast(data, data, bytes(range), ncclUint8, owner, caller.communicator, caller.stream);
  });
}

}  // namespace

bool nccl_has(const Call& call) { return call.op != ReduceOp::fixed_sum; }

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::float32: return ncclFloat32;
    case DType::float64: return ncclFloat64;
    case DType::bfloat16: return ncclBfloat16;
    case DType::float16: return ncclFloat16;
    case DType::int32: return ncclInt32;
    case DType::int64: return ncclInt64;
    case DType::uint64: return ncclUint64;
    default: throw Error({.message = fmt::format("NCCL reduces no {}", name_of(dtype))});
  }
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ncclSum;
    case ReduceOp::min: return ncclMin;
    case ReduceOp::max: return ncclMax;
    case ReduceOp::mean: return ncclAvg;
    case ReduceOp::fixed_sum: break;
  }
  throw Error({.message = fmt::format("NCCL has no {}", name_of(op))});
}

ncclResult_t put(const NcclApi& api, const Call& call, const NcclCaller& caller) {
  switch (call.kind) {
    case CallKind::send:
    case CallKind::receive:
    case CallKind::barrier: break;  // these go through the host
    case CallKind::all_reduce:
      return api.all_reduce(call.data, call.data, call.count, nccl_type(call.dtype), nccl_op(call.op), caller.communicator,
                            caller.stream);
    case CallKind::reduce_scatter: return put_reduce_scatter(api, call, caller);
    case CallKind::all_gather: return put_all_gather(api, call, caller);
    case CallKind::broadcast:
      return api.broadcast(call.data, call.data, call.bytes(), ncclUint8, call.peer, caller.communicator, caller.stream);
  }
  return ncclSuccess;
}

}  // namespace trireme::comm
