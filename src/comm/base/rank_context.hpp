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

// Something that advances while a rank waits, such as collectives and messages under way.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void advance() = 0;                           // never waits
  virtual bool needs_polling() const { return false; }  // true while it advances only by calls of advance()
};

// The state of one rank. Used only by the rank's thread; `node` is shared with the other ranks.
class RankContext {
 public:
  struct Place {
    int rank = 0;               // in the world
    int node_rank = 0;          // among the ranks that share `node`
    bool shares_all = false;    // `node` holds all ranks of the world, so node ranks are world ranks
    bool shares_cores = false;  // there are more ranks than cores, so waits do not spin
    std::chrono::milliseconds deadline{};
  };
  RankContext(const Place& place, std::shared_ptr<NodeControl> node) : place_(place), node_(std::move(node)) {}

  int rank() const { return place_.rank; }
  int node_rank() const { return place_.node_rank; }
  bool shares_all() const { return place_.shares_all; }
  bool shares_cores() const { return place_.shares_cores; }
  std::chrono::milliseconds deadline() const { return place_.deadline; }
  FlightRecorder* flight() { return flight_.get(); }  // null: nothing is recorded
  void note_process();                                // notes this process in `node`, if the rank is a process of its own
  void record_to(std::shared_ptr<FlightRecorder> flight) { flight_ = std::move(flight); }
  NodeControl& node() { return *node_; }
  const NodeControl& node() const { return *node_; }

  void add(Progress* progress) { active_.push_back(progress); }
  void remove(Progress* progress) { std::erase(active_, progress); }
  void advance();
  bool needs_polling() const;

  // Notes that these ranks of the node may wait for a change that this one has made. wake_others() wakes them if they sleep; it
  // needs a fence, so call it once after the work. It returns whether there were changes.
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
  // Checks, about once a second, whether a process of this node has ended without reporting a failure, and records one for it.
  // Not every launcher ends a job when a rank dies.
  void check_neighbours(std::chrono::steady_clock::time_point now);
  void record_lost_process(int rank);       // in the world
  bool record_failure(const Error& error);  // false if another failure was recorded before, which check_failure() throws
  void record_failure(const std::exception_ptr& failure) { node_->record_failure(describe(failure)); }
  void end(const std::exception_ptr& failure);  // records an exception of main
  int conclude(int code);                       // prints the job's first failure, once; returns the exit code
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

// Something that a rank can wait for only by polling.
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

// The rank on this thread, for progress(); null outside launch.
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
