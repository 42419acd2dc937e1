#include <exception>

#include "comm/base/backend.hpp"

namespace trireme::comm {
namespace {

void finish(Operation& operation) {
  if (FlightRecorder* flight = operation.context().flight()) flight->finish(operation.flight_number);
}

}  // namespace

// Runs `action`. An error may belong to this call or to another that was advanced meanwhile. The other ranks can't complete
// their calls either, so the error is recorded as the job's, before errors that follow from it.
template <typename Action>
auto Operation::or_abandon(Action action) {
  try {
    return action();
  } catch (...) {
    context().record_failure(std::current_exception());
    if (FlightRecorder* flight = context().flight()) flight->fail(flight_number);
    abandon();
    throw;
  }
}

bool Operation::done() {
  const bool done = or_abandon([this] {
    context().advance();
    const bool is_ready = ready();
    context().wake_others();
    if (is_ready) return true;
    context().check_failure();
    check_peers();
    return false;
  });
  if (done) finish(*this);
  return done;
}

void Operation::wait_on_host() {
  or_abandon([this] { wait_for(context(), *this); });
  finish(*this);
}

void Operation::wait_on_stream() {
  const bool ordered = or_abandon([this] {
    context().check_failure();
    return order_before_current();
  });
  if (!ordered) wait_on_host();  // otherwise the backend completes it
}

}  // namespace trireme::comm
