#pragma once

#include <cmath>
#include <cstdint>

#include "trireme/autograd/initializer.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// Uniform in +-1 / sqrt(fan in), as in torch.nn for the weights and biases of linear layers, convolutions and recurrent cells.
inline Initializer uniform_by_fan_in(std::int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return Initializer::uniform(-bound, bound);
}

}  // namespace nn
}  // namespace trireme
