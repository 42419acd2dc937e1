#include <utility>

#include "comm/base/backend.hpp"

namespace trireme::comm {
namespace {

// A call without an operation is done already.
Pending pending(FlightRecorder* flight, std::uint64_t number, std::unique_ptr<Operation> operation) {
  if (operation != nullptr) {
    operation->flight_number = number;
  } else if (flight != nullptr) {
    flight->finish(number);
  }
  return Pending(std::move(operation));
}

// Runs `action`; if it throws, marks the entry as failed.
template <typename Action>
auto recorded(FlightRecorder* flight, std::uint64_t number, Action action) {
  try {
    return action();
  } catch (...) {
    if (flight != nullptr) flight->fail(number);
    throw;
  }
}

}  // namespace

Pending start(Backend& backend, const Call& call) {
  FlightRecorder* flight = backend.context().flight();
  if (flight == nullptr) return Pending(backend.start(call));
  Call numbered = call;
  numbered.flight_number = flight->issue(backend.recorded, backend.members(), call);
  return pending(flight, numbered.flight_number,
                 recorded(flight, numbered.flight_number, [&] { return backend.start(numbered); }));
}

Pending receive(Backend& backend, const Call& message) {
  FlightRecorder* flight = backend.context().flight();
  std::uint64_t number = 0;
  if (flight != nullptr) number = flight->issue(backend.recorded, backend.members(), message);
  return pending(flight, number, recorded(flight, number, [&] { return backend.receive(message); }));
}

void send(Backend& backend, const Call& message) {
  FlightRecorder* flight = backend.context().flight();
  std::uint64_t number = 0;
  if (flight != nullptr) number = flight->issue(backend.recorded, backend.members(), message);
  recorded(flight, number, [&] { backend.send(message); });
  if (flight != nullptr) flight->finish(number);
}

}  // namespace trireme::comm
