#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "comm/calls/written_call.hpp"
#include "comm/wire/wire.hpp"
#include "comm/wire/wire_transfer.hpp"

namespace trireme::comm {

// The ranks between which one part of a group's data moves between nodes.
struct Lane {
  std::vector<int> peers;  // the group rank on each node that has this rank's index; empty: this rank moves no part
  int node = 0;            // of this rank
  int calls = 0;           // the channel for comparing calls; `data` has its own
  WireChannel data;
};

// A collective between nodes. First the ranks compare their calls; a small all-reduce sends its elements with the comparison.
// Then the data move.
class InterNodeCollective final : public WireJob {
 public:
  struct Work {
    Call call;
    std::uint64_t sequence = 0;
    Range small;  // elements of an all_reduce that are sent with the comparison
    ChunkedSchedule schedule;
  };
  InterNodeCollective(Lane& lane, Work work);  // `lane` outlives it
  ~InterNodeCollective() override;

  void release() { released_.store(true, std::memory_order_release); }  // lets the data move, after the node's own part

  bool advance() override;
  void stop() noexcept override;

  // The calls of the ranks in this lane, by node; nothing for those that have not called. For errors, after a failure or while
  // waiting.
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
  bool stopped_ = false;  // stopped before all had called
  WireTransfer transfer_;
  std::vector<Envelope> envelopes_;  // by node
  std::vector<Batch> receives_;      // by node
  Batch sends_;
};

constexpr std::size_t small_bytes = 8192;  // the most bytes of elements that are sent with the comparison

}  // namespace trireme::comm
