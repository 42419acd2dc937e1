#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "comm/calls/written_call.hpp"
#include "comm/wire/wire.hpp"
#include "comm/wire/wire_transfer.hpp"

namespace trireme::comm {

// Who talks to whom between the nodes of one group.
struct Lane {
  std::vector<int> peers;  // the group rank on each node that has this rank's index; empty: this rank speaks for no part
  int node = 0;            // of this rank
  int calls = 0;           // the channel on which calls are compared; `data` has another
  WireChannel data;
};

// A collective between nodes. First its callers compare what they called; a small all-reduce sends its elements along with
// that. Then the data move.
class InterNodeCollective final : public WireJob {
 public:
  struct Work {
    Call call;
    std::uint64_t sequence = 0;
    Range small;  // elements of an all_reduce that fit beside the comparison
    ChunkedSchedule schedule;
  };
  InterNodeCollective(Lane& lane, Work work);  // `lane` outlives it
  ~InterNodeCollective() override;

  void release() { released_.store(true, std::memory_order_release); }  // the node's own part is done, the data may move

  bool advance() override;
  void stop() noexcept override;

  // For errors, after a failure or while waiting; the callers of the other nodes by node, nothing from those that have not
  // called.
  std::vector<std::optional<WrittenCall>> calls();
  bool differs() const { return differs_.load(std::memory_order_acquire); }

 private:
  struct Envelope;
  void announce();
  bool compare();
  void reduce_small();

  Lane& lane_;
  Work work_;
  std::atomic<bool> released_{false};
  std::atomic<bool> differs_{false};
  bool announced_ = false;
  bool compared_ = false;
  bool stopped_ = false;  // before all had called
  WireTransfer transfer_;
  std::vector<Envelope> envelopes_;  // by node
  std::vector<Batch> receives_;      // by node
  Batch sends_;
};

constexpr std::size_t small_bytes = 8192;  // elements that travel with the comparison

}  // namespace trireme::comm
