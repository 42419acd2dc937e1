#pragma once

#include <cstdint>

namespace trireme::ops {

inline constexpr std::int32_t ignored_target = -100;  // a target that counts for nothing, as in PyTorch

}  // namespace trireme::ops
