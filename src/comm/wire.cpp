#include "comm/wire.hpp"

#include <chrono>
#include <utility>

namespace trireme::comm {
namespace {

constexpr std::chrono::microseconds nap{250};

}  // namespace

Wire::Wire(std::shared_ptr<RankContext> context, ProgressMode mode) : context_(std::move(context)), mode_(mode) {
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
  for (auto entry = jobs_.begin(); entry != jobs_.end();) {
    Ticket& ticket = **entry;
    bool ended = false;
    try {
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
  std::unique_lock lock(sleep_mutex_);
  while (!stopping_) {
    if (jobs_under_way_.load() == 0) {
      wake_.wait(lock);
      continue;
    }
    lock.unlock();
    if (const Turn turn = try_turn()) advance_jobs();
    std::this_thread::sleep_for(nap);
    lock.lock();
  }
}

}  // namespace trireme::comm
