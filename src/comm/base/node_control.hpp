#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme::comm {

// Orders all stores before it against all loads after it, across ranks: a rank that changes something sees the sleeper, or the
// sleeper sees the change. ThreadSanitizer ignores fences, but no data depend on this one.
inline void full_fence() {
#pragma GCC diagnostic push
#ifndef __clang__  // has no such warning
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
#endif
  std::atomic_thread_fence(std::memory_order_seq_cst);
#pragma GCC diagnostic pop
}

// The first failure of a job.
struct Failure {
  int rank = 0;  // in the world
  int exit_code = 1;
  ErrorCode code = ErrorCode::internal;
  std::uint64_t sequence = 0;  // of the call that failed, if it was one
  std::string text;
};

// The state that the ranks of a node share: the first failure, which ranks have left, and which sleep. It lies in memory that
// ranks may map at different addresses, so it holds no pointers. Ranks are counted within the node.
class NodeControl {
 public:
  static std::size_t bytes(int ranks);
  static NodeControl* create(void* memory, int ranks);  // once, before other ranks use the memory
  static NodeControl* find(void* memory);

  int ranks() const { return ranks_; }

  // Records the first failure and wakes all ranks. False: another failure was recorded before.
  bool record_failure(const Failure& failure);
  bool failed() const { return failure_state_.load() != none; }
  Failure failure() const;  // only when failed()
  bool claim_report();      // true for one caller, which prints the failure
  bool claim_relay();       // true for one caller, which informs other nodes
  bool claim_abort();       // true for one caller, which ends the job

  void note_return(int rank);  // main has returned: the rank makes no further calls, but its messages may be under way
  bool returned(int rank) const { return places()[rank].returned.load() != 0; }
  void leave(int rank);
  bool left(int rank) const { return places()[rank].left.load() != 0; }
  bool all_left() const;

  // The process of a rank, so that the others notice if it ends without reporting a failure. Ranks that are threads have none.
  struct OwnProcess {
    std::int32_t world_rank = 0;
    std::int32_t id = 0;
    std::uint64_t start = 0;    // clock ticks after the boot
    std::uint64_t machine = 0;  // this_machine(); the id is valid only there
  };
  void note_process(int rank, const OwnProcess& process);
  std::optional<OwnProcess> process(int rank) const;  // nothing if none was noted

  // To sleep, a rank announces it, checks again whether it must wait, then calls sleep() with the announced value.
  std::uint32_t announce_sleep(int rank);
  void sleep(int rank, std::uint32_t seen, std::chrono::microseconds timeout);
  void end_sleep(int rank);

  // Wakes those of `ranks` that sleep. The caller's changes must be visible before, see full_fence().
  void wake(std::span<const int> ranks) {
    if (sleepers_.load(std::memory_order_relaxed) > 0) [[unlikely]]
      wake_sleepers(ranks);
  }
  void wake_all();

  // For the proof that all ranks wait forever. A rank counts its changes for which others may wait. A rank that has waited long
  // notes the call in which it waits, and counts its checks that found nothing new.
  void note_change(int rank) {
    auto& changes = places()[rank].changes;
    changes.store(changes.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void note_wait(int rank, std::string_view what);
  void note_look(int rank) { places()[rank].looks.fetch_add(1); }
  void end_wait(int rank) { places()[rank].wait.store(0); }
  std::optional<std::string> wait_of(int rank) const;  // nothing if the rank has not waited long

  // A state in which every rank has waited long or has left; nothing if a rank does something else.
  struct Standstill {
    std::uint64_t changes = 0;
    std::vector<std::uint64_t> waits;  // by rank; 0: left
    std::vector<std::uint64_t> looks;
    bool proven_by(const Standstill& later) const;  // each waiting rank has checked twice since, and nothing changed
  };
  std::optional<Standstill> standstill() const;

 private:
  static constexpr std::size_t text_limit = 4096;
  static constexpr std::size_t wait_words = 32;
  enum State : std::uint32_t { none, writing, recorded };

  struct alignas(64) Place {
    std::atomic<std::uint32_t> doorbell{0};
    std::atomic<std::uint32_t> sleeping{0};
    std::atomic<std::uint32_t> returned{0};
    std::atomic<std::uint32_t> left{0};
    std::atomic<std::uint32_t> has_process{0};  // 1: `process` is written
    OwnProcess process;
    alignas(64) std::atomic<std::uint64_t> changes{0};
    std::atomic<std::uint64_t> wait{0};  // the number of the wait that `what` describes; 0: does not wait
    std::atomic<std::uint64_t> looks{0};
    std::uint64_t num_waits = 0;                                // used by its owner only
    std::array<std::atomic<std::uint64_t>, wait_words> what{};  // text
  };

  explicit NodeControl(int ranks);
  void wake_sleepers(std::span<const int> ranks);
  void ring(Place& place);
  Place* places() const;

  alignas(64) std::atomic<std::uint32_t> sleepers_{0};
  alignas(64) std::atomic<std::uint32_t> failure_state_{none};
  std::atomic<std::uint32_t> reported_{0};
  std::atomic<std::uint32_t> relayed_{0};
  std::atomic<std::uint32_t> aborted_{0};
  int ranks_;
  int failed_rank_ = 0;
  int exit_code_ = 0;
  ErrorCode code_ = ErrorCode::internal;
  std::uint64_t sequence_ = 0;
  std::size_t text_size_ = 0;
  std::array<char, text_limit> text_{};
};

// For ranks that are threads, or one rank alone.
std::shared_ptr<NodeControl> make_node_control(int ranks);

}  // namespace trireme::comm
