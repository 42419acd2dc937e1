#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "comm/base/rank_context.hpp"
#include "comm/calls/members.hpp"
#include "comm/nccl/api.hpp"

namespace trireme::comm {

// How long, and at which intervals, a rank checks whether aborted work has ended.
inline constexpr std::chrono::seconds abort_patience{5};
inline constexpr std::chrono::milliseconds abort_nap{1};

// NCCL's communicator of a group. It never blocks inside NCCL: this rank waits for others as in any collective, so that a
// failure or the deadline ends the wait. Used by its rank's thread; abort() and failure() may be called on any thread.
class Communicator {
 public:
  // Collective over the members.
  Communicator(std::shared_ptr<const NcclApi> api, std::shared_ptr<RankContext> context, const Members& members,
               const ncclUniqueId& id);
  ~Communicator() {
    abort();
    wait_for_abort();
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Calls `put`, which puts work into a stream, and returns when NCCL has done so.
  void enqueue(const std::string& what, const std::function<ncclResult_t(ncclComm_t)>& put);

  // Completes the work under way; after a failure, or while an exception is thrown, aborts it.
  void close() noexcept;
  void abort() noexcept;           // aborts the work of this rank; returns at once
  std::optional<Error> failure();  // an asynchronous error of NCCL, if there is one

  // Registers memory, so that collectives need not copy it. Null if NCCL can't.
  void* register_memory(void* data, std::size_t bytes);
  void deregister_memory(void* registration) noexcept;

 private:
  class Readiness;

  void wait_until_ready(const std::string& what);
  void wait_for_abort() noexcept;  // at most for abort_patience
  bool is_ready(const std::string& what);

  std::shared_ptr<const NcclApi> api_;
  std::shared_ptr<RankContext> context_;
  std::string label_;
  int exceptions_;  // being thrown when this was made
  std::mutex mutex_;
  ncclComm_t communicator_ = nullptr;  // null: aborted
  std::thread aborting_;
  std::shared_ptr<std::atomic<bool>> aborted_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace trireme::comm
