#include "comm/wire/wire.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace trireme::comm {
namespace {

constexpr std::chrono::microseconds shortest_nap{250};
constexpr std::chrono::microseconds longest_nap{2000};

// Every look takes the core and part of its cache from a thread that computes, so naps get longer if few of the messages arrive
// between two looks. A rank that waits for messages looks by itself.
std::chrono::microseconds next_nap(std::chrono::microseconds last, double share_done) {
  if (share_done > 0.25) return std::max(last / 2, shortest_nap);
  return share_done < 0.1 ? std::min(2 * last, longest_nap) : last;
}

// Requests short time slices: Linux (6.12 and later) then runs this thread soon after each nap even if a computing thread keeps
// the core busy, instead of at the end of that thread's slice. On other systems nothing changes.
void ask_for_short_slices() {
#ifdef SYS_sched_setattr
  struct {
    std::uint32_t size = 48;
    std::uint32_t policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 100'000;  // nanoseconds of a slice
    std::uint64_t deadline = 0;
    std::uint64_t period = 0;
  } attributes;
  static_assert(sizeof(attributes) == 48);
  syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

}  // namespace

Wire::Wire(std::shared_ptr<RankContext> context, ProgressMode mode, std::shared_ptr<Transport> transport)
    : context_(std::move(context)), mode_(mode), transport_(std::move(transport)) {
  context_->add(this);
}

Wire::~Wire() {
  context_->remove(this);
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(sleep_mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

Wire::Ticket::Ticket(Wire& wire, std::unique_ptr<WireJob> job) : wire_(wire), job_(std::move(job)) {
  {
    const Turn turn = wire_.take_turn();
    wire_.jobs_.push_back(this);
    const std::lock_guard lock(wire_.sleep_mutex_);
    wire_.jobs_under_way_.fetch_add(1);
  }
  if (wire_.mode_ == ProgressMode::cooperative) return;
  if (!wire_.thread_.joinable()) wire_.thread_ = std::thread([&wire] { wire.run(); });
  wire_.wake_.notify_one();
}

Wire::Ticket::~Ticket() {
  if (ended_.load()) return;
  const Turn turn = wire_.take_turn();
  if (ended_.load()) return;
  job_->stop();
  wire_.jobs_.remove(this);
  wire_.jobs_under_way_.fetch_sub(1);
}

bool Wire::Ticket::done() const {
  if (!ended_.load(std::memory_order_acquire)) return false;
  if (failure_) std::rethrow_exception(failure_);
  return true;
}

void Wire::advance() {
  if (!needs_polling()) return;
  if (const Turn turn = try_turn()) advance_jobs();
}

void Wire::advance_jobs() {
  std::exception_ptr refused;  // an error of the network: no job can advance
  try {
    share_done_ = transport_->test();
  } catch (...) {
    refused = std::current_exception();
  }
  for (auto entry = jobs_.begin(); entry != jobs_.end();) {
    Ticket& ticket = **entry;
    bool ended = false;
    try {
      if (refused) std::rethrow_exception(refused);
      ended = ticket.job_->advance();
    } catch (...) {
      ticket.failure_ = std::current_exception();
      ticket.job_->stop();
      ended = true;
    }
    if (!ended) {
      ++entry;
      continue;
    }
    entry = jobs_.erase(entry);
    jobs_under_way_.fetch_sub(1);
    ticket.ended_.store(true, std::memory_order_release);
  }
}

void Wire::run() {
  ask_for_short_slices();
  auto nap = shortest_nap;
  std::unique_lock lock(sleep_mutex_);
  while (!stopping_) {
    if (jobs_under_way_.load() == 0) {
      wake_.wait(lock);
      continue;
    }
    lock.unlock();
    if (const Turn turn = try_turn()) {
      advance_jobs();
      nap = next_nap(nap, share_done_);
    }
    std::this_thread::sleep_for(nap);
    lock.lock();
  }
}

}  // namespace trireme::comm
