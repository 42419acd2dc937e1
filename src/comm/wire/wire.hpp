#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/base/rank_context.hpp"
#include "comm/wire/transport.hpp"
#include "trireme/comm/wire/algorithm.hpp"

namespace trireme::comm {

// Work that moves data between nodes. The caller of advance() and stop() must have the wire's turn.
class WireJob {
 public:
  virtual ~WireJob() = default;
  virtual bool advance() = 0;        // never waits; true when the job is done
  virtual void stop() noexcept = 0;  // ends the job: afterwards it accesses no memory of its user
};

// Serializes the calls of a rank's transport and other calls of its network library, since MPI runs as MPI_THREAD_SERIALIZED: a
// caller must hold a Turn. Jobs advance whenever the rank waits or calls progress(), and in between by a thread that sleeps
// between its looks, so that data move while the rank computes.
class Wire final : public Progress {
 public:
  using Turn = std::unique_lock<std::recursive_mutex>;

  Wire(std::shared_ptr<RankContext> context, ProgressMode mode, std::shared_ptr<Transport> transport);
  ~Wire() override;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] Turn take_turn() { return Turn(turn_); }
  [[nodiscard]] Turn try_turn() { return Turn(turn_, std::try_to_lock); }  // false if another thread has the turn

  Transport& transport() { return *transport_; }  // to be used with the turn

  // A job that runs until it is done, fails, or its ticket is destroyed.
  class Ticket {
   public:
    Ticket(Wire& wire, std::unique_ptr<WireJob> job);
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    bool done() const;  // throws the job's failure

   private:
    friend class Wire;
    Wire& wire_;
    std::unique_ptr<WireJob> job_;
    std::atomic<bool> ended_{false};
    std::exception_ptr failure_;
  };

  void advance() override;
  bool needs_polling() const override { return jobs_under_way_.load(std::memory_order_relaxed) > 0; }

 private:
  void advance_jobs();
  void run();

  std::shared_ptr<RankContext> context_;
  ProgressMode mode_;
  std::recursive_mutex turn_;
  std::shared_ptr<Transport> transport_;
  double share_done_ = 1;    // the share of messages that were done at the last look
  std::list<Ticket*> jobs_;  // in the order of their start
  std::atomic<int> jobs_under_way_{0};

  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;  // starts with the first job
};

}  // namespace trireme::comm
