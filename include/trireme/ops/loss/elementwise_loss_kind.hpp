#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

enum class ElementwiseLoss : std::uint8_t {
  squared_error,             // (x - target)^2
  binary_cross_entropy,      // of the probability sigmoid(x) against a target in [0, 1]
  kl_divergence,             // target * (log(target) - x), x a log-probability; 0 where the target is 0
  kl_divergence_log_target,  // the same, of a target that is a log-probability too
};

}  // namespace ops
}  // namespace trireme
