#include <exception>
#include <utility>

#include "comm/backend.hpp"
#include "trireme/comm/group.hpp"

namespace trireme {
namespace {

// Called for an error while it was waited for, of this call or of another that was worked on meanwhile. No other rank gets to
// the end of its calls either, so the error is the job's, and recorded before what follows from it.
void abandon(std::unique_ptr<comm::Operation>& operation) noexcept {
  comm::RankContext& context = operation->context();
  context.record_failure(std::current_exception());
  if (comm::FlightRecorder* flight = context.flight()) flight->fail(operation->flight_number);
  operation->abandon();
  operation.reset();
}

// Nothing may touch the caller's memory any more when its Pending is gone.
void settle(std::unique_ptr<comm::Operation>& operation) noexcept {
  if (operation == nullptr) return;
  try {
    comm::wait_for(operation->context(), *operation);
    if (comm::FlightRecorder* flight = operation->context().flight()) flight->finish(operation->flight_number);
    operation.reset();
  } catch (...) {
    abandon(operation);
  }
}

// Runs `action`; after an error there is nothing more to wait for.
template <typename Action>
auto or_abandon(std::unique_ptr<comm::Operation>& operation, Action action) {
  try {
    return action();
  } catch (...) {
    abandon(operation);
    throw;
  }
}

// The result is there.
void finish(std::unique_ptr<comm::Operation>& operation) {
  if (comm::FlightRecorder* flight = operation->context().flight()) flight->finish(operation->flight_number);
  operation.reset();
}

}  // namespace

Pending::Pending() = default;
Pending::Pending(std::unique_ptr<comm::Operation> operation) : operation_(std::move(operation)) {}
Pending::Pending(Pending&&) noexcept = default;
Pending::~Pending() { settle(operation_); }

Pending& Pending::operator=(Pending&& other) noexcept {
  if (this != &other) {
    settle(operation_);
    operation_ = std::move(other.operation_);
  }
  return *this;
}

bool Pending::done() {
  if (operation_ == nullptr) return true;
  const bool done = or_abandon(operation_, [this] {
    comm::RankContext& context = operation_->context();
    context.advance();
    const bool ready = operation_->ready();
    context.wake_others();
    if (ready) return true;
    context.check_failure();
    operation_->check_peers();
    return false;
  });
  if (done) finish(operation_);
  return done;
}

void Pending::wait_on_host() {
  if (operation_ == nullptr) return;
  or_abandon(operation_, [this] { comm::wait_for(operation_->context(), *operation_); });
  finish(operation_);
}

void Pending::wait() {
  if (operation_ == nullptr) return;
  const bool ordered = or_abandon(operation_, [this] {
    operation_->context().check_failure();
    return operation_->order_before_current();
  });
  if (!ordered) return wait_on_host();
  operation_.reset();  // the backend sees to its end
}

}  // namespace trireme
