#include "trireme/autograd/observer.hpp"

#include "trireme/core/error.hpp"

namespace trireme {

namespace detail {

constinit thread_local Gate gate;

}  // namespace detail

Attributes OperationView::attributes() const {
  Attributes attributes;
  if (describe != nullptr) describe(operation, attributes);
  return attributes;
}

Observation::Observation(Observer& observer) : observer_(observer), outer_(detail::gate.observation) {
  detail::gate.observation = this;
}

Observation::~Observation() { detail::gate.observation = outer_; }

void Observation::before(Pass pass, const OperationView& view) const {
  if (outer_ != nullptr) outer_->before(pass, view);
  observer_.before(pass, view);
}

void Observation::after(Pass pass, const OperationView& view) const {
  if (outer_ != nullptr) outer_->after(pass, view);
  observer_.after(pass, view);
}

}  // namespace trireme
