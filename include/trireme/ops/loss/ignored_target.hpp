#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

inline constexpr std::int32_t ignored_target = -100;  // a target that is ignored, as in PyTorch

}  // namespace ops
}  // namespace trireme
