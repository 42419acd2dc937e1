#pragma once

#include "trireme/ops/loss/elementwise_loss_kind.hpp"

namespace trireme::ops {

// A loss and its parameters, in the type that it is computed in.
template <typename A>
struct ElementwiseLossOf {
  ElementwiseLoss kind;
  A first = {};   // positive_weight, delta or alpha
  A second = {};  // gamma
};

}  // namespace trireme::ops
