#pragma once

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/resize/interpolate.hpp"

namespace trireme TRIREME_EXPORT {

// Images [batch, channels, height, width] of another size (ops/resize/interpolate.hpp).
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> interpolate(const Variable<T, D>& x, const InterpolateOptions& options);

}  // namespace trireme
