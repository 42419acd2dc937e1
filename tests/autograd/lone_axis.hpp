#pragma once

#include "trireme/core/collectives.hpp"

namespace trireme::tests {

// An axis of one rank.
class LoneAxis final : public Collectives {
 public:
  LoneAxis() : Collectives(0, 1) {}

 private:
  Pending start(const Call&) const override { return {}; }
};

inline const LoneAxis& lone_axis() {
  static const LoneAxis axis;
  return axis;
}

}  // namespace trireme::tests
