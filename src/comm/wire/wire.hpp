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

// Something that moves between nodes. advance() and stop() are called by whoever has the wire's turn.
class WireJob {
 public:
  virtual ~WireJob() = default;
  virtual bool advance() = 0;        // never waits; true when all is done
  virtual void stop() noexcept = 0;  // the job will not be advanced again: touches no memory of its user any more
};

// The calls of a rank's transport take turns here, with other calls of its network library: MPI runs as MPI_THREAD_SERIALIZED.
// Jobs advance whenever the rank waits or calls progress(), and meanwhile by a thread that sleeps between its looks, so that
// data move while the rank computes.
class Wire final : public Progress {
 public:
  using Turn = std::unique_lock<std::recursive_mutex>;

  Wire(std::shared_ptr<RankContext> context, ProgressMode mode, std::shared_ptr<Transport> transport);
  ~Wire() override;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] Turn take_turn() { return Turn(turn_); }
  [[nodiscard]] Turn try_turn() { return Turn(turn_, std::try_to_lock); }  // owns nothing while the thread has it

  Transport& transport() { return *transport_; }  // for who has the turn

  // A job that runs until it is done, fails or its ticket goes.
  class Ticket {
   public:
    Ticket(Wire& wire, std::unique_ptr<WireJob> job);
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    bool done() const;  // throws what went wrong

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
  double share_done_ = 1;    // of the messages under way, at the last look
  std::list<Ticket*> jobs_;  // in the order of their start
  std::atomic<int> jobs_under_way_{0};

  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;  // starts with the first job
};

}  // namespace trireme::comm
