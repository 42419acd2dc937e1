#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

enum class ElementwiseLoss : std::uint8_t {
  squared_error,             // (x - target)^2
  binary_cross_entropy,      // of the probability sigmoid(x) against a target in [0, 1]
  kl_divergence,             // target * (log(target) - x), x a log-probability; 0 where the target is 0
  kl_divergence_log_target,  // the same for a target that is a log-probability too
  absolute_error,            // |x - target|
  huber,                     // (x - target)^2 / 2 where |x - target| <= delta, linear beyond
  smooth_l1,                 // huber divided by delta; absolute_error if delta is 0
  focal,                     // binary_cross_entropy times alpha and (1 - probability of the target)^gamma
};

// Parameters of some losses; other losses ignore them.
struct ElementwiseLossOptions {
  double positive_weight = 1;  // of binary_cross_entropy: weight of the term for targets of 1
  double delta = 1;            // of huber and smooth_l1
  double alpha = 0.25;  // of focal: weight of targets of 1; the weight of targets of 0 is 1 - alpha; negative: no weights
  double gamma = 2;     // of focal
};

}  // namespace ops
}  // namespace trireme
