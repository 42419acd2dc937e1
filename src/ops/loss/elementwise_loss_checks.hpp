#pragma once

#include <string_view>

#include "ops/loss/elementwise_loss_of.hpp"
#include "trireme/core/error.hpp"

namespace trireme::ops {

// Checks the options of a loss, and returns it with its parameters.
template <typename A>
ElementwiseLossOf<A> loss_of(std::string_view op, ElementwiseLoss kind, const ElementwiseLossOptions& options) {
  switch (kind) {
    case ElementwiseLoss::squared_error:
    case ElementwiseLoss::kl_divergence:
    case ElementwiseLoss::kl_divergence_log_target:
    case ElementwiseLoss::absolute_error: break;
    case ElementwiseLoss::binary_cross_entropy: return {kind, static_cast<A>(options.positive_weight)};
    case ElementwiseLoss::huber:
      require(options.delta > 0, "{}: delta is {}, but must be above 0", op, options.delta);
      return {kind, static_cast<A>(options.delta)};
    case ElementwiseLoss::smooth_l1:
      require(options.delta >= 0, "{}: beta is {}, but must not be below 0", op, options.delta);
      return {kind, static_cast<A>(options.delta)};
    case ElementwiseLoss::focal:
      require(options.alpha <= 1 && options.gamma >= 0, "{}: alpha is {} and gamma {}, but must be at most 1 and at least 0",
              op, options.alpha, options.gamma);
      return {kind, static_cast<A>(options.alpha), static_cast<A>(options.gamma)};
  }
  return {kind};
}

}  // namespace trireme::ops
