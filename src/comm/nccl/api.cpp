#include "comm/nccl/api.hpp"

#include <fmt/format.h>

#include <utility>

#include "device/cuda/library.hpp"

namespace trireme::comm {
namespace {

std::string version_text(int code) { return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100); }

void require_version(const NcclApi& api) {
  int version = 0;
  const ncclResult_t result = api.get_version(&version);
  if (result != ncclSuccess) throw nccl_error(api, result, nullptr, "ncclGetVersion");
  if (version >= NCCL_VERSION_CODE) return;
  throw Error({.code = ErrorCode::not_available,
               .message = "NCCL is older than the one this build was made with",
               .wanted = version_text(NCCL_VERSION_CODE),
               .had = version_text(version),
               .hint = "name the folder of a newer libnccl.so.2 in LD_LIBRARY_PATH"});
}

}  // namespace

NcclApi open_nccl() {
  const device::Library library("NCCL", {"libnccl.so.2"});
  NcclApi api;
  library.find("ncclGetVersion", api.get_version);
  library.find("ncclGetUniqueId", api.get_unique_id);
  library.find("ncclCommInitRankConfig", api.comm_init_rank_config);
  library.find("ncclCommFinalize", api.comm_finalize);
  library.find("ncclCommDestroy", api.comm_destroy);
  library.find("ncclCommAbort", api.comm_abort);
  library.find("ncclCommGetAsyncError", api.comm_get_async_error);
  library.find("ncclGetErrorString", api.get_error_string);
  library.find("ncclGetLastError", api.get_last_error);
  library.find("ncclCommRegister", api.comm_register);
  library.find("ncclCommDeregister", api.comm_deregister);
  library.find("ncclMemAlloc", api.mem_alloc);
  library.find("ncclMemFree", api.mem_free);
  library.find("ncclAllReduce", api.all_reduce);
  library.find("ncclReduce", api.reduce);
  library.find("ncclReduceScatter", api.reduce_scatter);
  library.find("ncclAllGather", api.all_gather);
  library.find("ncclBroadcast", api.broadcast);
  library.find("ncclGroupStart", api.group_start);
  library.find("ncclGroupEnd", api.group_end);
  require_version(api);
  return api;
}

Error nccl_error(const NcclApi& api, ncclResult_t result, ncclComm_t communicator, std::string operation) {
  return Error({.code = result == ncclRemoteError ? ErrorCode::peer_failed : ErrorCode::internal,
                .message = fmt::format("NCCL: {}", api.get_error_string(result)),
                .operation = std::move(operation),
                .had = api.get_last_error(communicator),
                .hint = "NCCL_DEBUG=WARN makes NCCL print more; each rank needs a GPU of its own"});
}

}  // namespace trireme::comm
