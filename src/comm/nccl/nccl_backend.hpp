#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/backend.hpp"
#include "comm/nccl/communicator.hpp"
#include "comm/nccl/staged_backend.hpp"
#include "comm/nccl/watchdog.hpp"

namespace trireme::comm {

// The objects that the groups of one rank share.
struct NcclParts {
  std::shared_ptr<const NcclApi> api;
  MakeStream make_stream;
  std::shared_ptr<Watchdog> watchdog;
};

// A collective on the GPU.
struct NcclFlight {
  Call call;
  std::string name;
  std::unique_ptr<Operation> comparison;  // of all ranks' calls; null once they are found equal
  std::unique_ptr<Completion> completion;
  bool done = false;
};

// The ranks of a host group, each with a GPU. Data on a GPU go through NCCL; data on the host, and collectives that NCCL lacks,
// go through the host group.
class NcclBackend final : public StagedBackend,
                          public Progress,
                          public Watched,
                          public std::enable_shared_from_this<NcclBackend> {
 public:
  NcclBackend(std::shared_ptr<Backend> host, NcclParts parts);  // collective over `host`
  ~NcclBackend() override;

  RankContext& context() override { return *context_; }
  std::unique_ptr<Operation> start(const Call& call) override;
  std::shared_ptr<device::MemoryResource> memory() override;
  std::shared_ptr<Backend> make_group(const Members& members) override;

  void advance() override;
  bool needs_polling() const override { return !flights_.empty(); }  // a GPU does not announce when it is done
  void look(std::chrono::steady_clock::time_point now) noexcept override;

  // Called by the operation of a flight.
  ErrorFields describe_wait(const NcclFlight& flight) const;
  void abandon(NcclFlight& flight) noexcept;

 private:
  std::unique_ptr<Operation> start_on_gpu(const Call& call);
  bool finish_oldest();
  void watch(std::chrono::steady_clock::time_point now);
  void watch_nccl(std::chrono::steady_clock::time_point now);

  NcclParts parts_;
  std::shared_ptr<RankContext> context_;
  std::shared_ptr<Communicator> communicator_;  // null in a group of one

  std::mutex mutex_;  // guards flights_, which this rank's thread changes and the watchdog reads
  std::deque<std::shared_ptr<NcclFlight>> flights_;

  // Used by the watchdog's thread only.
  std::shared_ptr<NcclFlight> oldest_;  // under way when it last looked
  std::chrono::steady_clock::time_point oldest_since_;
  std::optional<std::chrono::steady_clock::time_point> error_since_;
};

}  // namespace trireme::comm
