#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/base/node_control.hpp"
#include "comm/base/waiting.hpp"
#include "comm/flight/flight_recorder.hpp"
#include "trireme/core/error.hpp"

namespace trireme::comm {

// What advances while a rank waits: a group's collectives, messages under way.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void advance() = 0;                           // never waits
  virtual bool needs_polling() const { return false; }  // true while only calls of advance() move it
};

// What one rank knows of itself. Used by this rank's thread only; `node` is shared with the other ranks.
class RankContext {
 public:
  struct Place {
    int rank = 0;               // in the world
    int node_rank = 0;          // among the ranks that share `node`
    bool shares_all = false;    // `node` has all ranks of the world, by their world ranks
    bool shares_cores = false;  // more ranks than cores: never spin
    std::chrono::milliseconds deadline{};
  };
  RankContext(const Place& place, std::shared_ptr<NodeControl> node) : place_(place), node_(std::move(node)) {}

  int rank() const { return place_.rank; }
  int node_rank() const { return place_.node_rank; }
  bool shares_all() const { return place_.shares_all; }
  bool shares_cores() const { return place_.shares_cores; }
  std::chrono::milliseconds deadline() const { return place_.deadline; }
  FlightRecorder* flight() { return flight_.get(); }  // null: nothing is recorded
  void note_process();                                // this rank is one of its own
  void record_to(std::shared_ptr<FlightRecorder> flight) { flight_ = std::move(flight); }
  NodeControl& node() { return *node_; }
  const NodeControl& node() const { return *node_; }

  void add(Progress* progress) { active_.push_back(progress); }
  void remove(Progress* progress) { std::erase(active_, progress); }
  void advance();
  bool needs_polling() const;

  // Notes that these ranks of the node may wait for what this one has just changed; wake_others() wakes them if they sleep.
  // It needs a fence, so it comes once, after the work. True: there was something.
  void changed(std::span<const int> node_ranks) {
    if (changed_.empty() || changed_.back().data() != node_ranks.data()) changed_.push_back(node_ranks);
  }
  bool wake_others() {
    if (changed_.empty()) return false;
    node_->note_change(place_.node_rank);
    full_fence();
    for (const auto& node_ranks : changed_) node_->wake(node_ranks);
    changed_.clear();
    return true;
  }

  void sleep(Awaited& awaited, std::chrono::microseconds timeout);

  void check_failure() const {  // throws Error{peer_failed} with the first failure of the job
    if (node_->failed()) [[unlikely]]
      throw_failure();
  }
  // Looks, about once a second, whether a process of this node has ended without a word, and records that as its failure. Not
  // every launcher ends a job with its first rank that dies.
  void check_neighbours(std::chrono::steady_clock::time_point now);
  void record_lost_process(int rank);       // in the world
  bool record_failure(const Error& error);  // false: check_failure() throws what another rank recorded before
  void record_failure(const std::exception_ptr& failure) { node_->record_failure(describe(failure)); }
  void end(const std::exception_ptr& failure);  // main has thrown it
  int conclude(int code);                       // prints the first failure of the job, once; the exit code with it
  void leave();

 private:
  [[noreturn]] void throw_failure() const;
  Failure describe(const std::exception_ptr& failure) const;

  Place place_;
  std::shared_ptr<NodeControl> node_;
  std::shared_ptr<FlightRecorder> flight_;
  std::chrono::steady_clock::time_point next_check_{};  // of neighbours
  std::vector<Progress*> active_;
  std::vector<std::span<const int>> changed_;
};

// Awaits what nobody tells this rank of: it has to look.
class Polled : public Awaited, public Progress {
 public:
  explicit Polled(RankContext& context) : context_(context) { context_.add(this); }
  ~Polled() override { context_.remove(this); }
  Polled(const Polled&) = delete;
  Polled& operator=(const Polled&) = delete;

  void advance() override {}
  bool needs_polling() const override { return true; }
  void wait() { wait_for(context_, *this); }

 private:
  RankContext& context_;
};

// The rank that runs on this thread, for progress(); null outside launch.
RankContext* current_rank();

class CurrentRank {
 public:
  explicit CurrentRank(RankContext& context);
  ~CurrentRank();
  CurrentRank(const CurrentRank&) = delete;
  CurrentRank& operator=(const CurrentRank&) = delete;

 private:
  RankContext* before_;
};

}  // namespace trireme::comm
