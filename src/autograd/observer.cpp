#include "trireme/autograd/observer.hpp"

#include <utility>

#include "trireme/autograd/operands.hpp"

namespace trireme {

namespace detail {

constinit thread_local Gate gate;

namespace {

void call(void (Observation::*what)(Pass, const OperationView&) const, Pass pass, const OperationView& view) {
  if (gate.observation == nullptr) return;  // it has ended meanwhile
  struct InObserver {
    InObserver() { gate.in_observer = true; }
    ~InObserver() { gate.in_observer = false; }
    InObserver(const InObserver&) = delete;
    InObserver& operator=(const InObserver&) = delete;
  } const in_observer;
  (gate.observation->*what)(pass, view);
}

}  // namespace

void add_view(std::vector<Operand>& to, std::shared_ptr<const device::Storage> storage, std::int64_t offset, const Shape& shape,
              DType dtype, const GradientSlot* slot) {
  to.push_back({.storage = std::move(storage),
                .offset = offset,
                .shape = shape,
                .dtype = dtype,
                .parameter = slot == nullptr ? std::string_view() : slot->parameter()});
}

void call_before(Pass pass, const OperationView& view) { call(&Observation::before, pass, view); }
void call_after(Pass pass, const OperationView& view) { call(&Observation::after, pass, view); }

}  // namespace detail

Attributes OperationView::attributes() const {
  Attributes attributes;
  if (describe != nullptr) describe(operation, attributes);
  return attributes;
}

Observation::Observation(Observer& observer) : observer_(observer), outer_(detail::gate.observation) {
  detail::gate.observation = this;
}

Observation::~Observation() {
  const Observation** place = &detail::gate.observation;
  while (*place != nullptr && *place != this) place = &(*place)->outer_;
  if (*place != nullptr) *place = outer_;
}

void Observation::before(Pass pass, const OperationView& view) const {
  if (outer_ != nullptr) outer_->before(pass, view);
  observer_.before(pass, view);
}

void Observation::after(Pass pass, const OperationView& view) const {
  if (outer_ != nullptr) outer_->after(pass, view);
  observer_.after(pass, view);
}

}  // namespace trireme
