#pragma once

#include <cstdint>

#include "ops/bodies/pack.hpp"

namespace trireme::ops {

// Whether packs of 16 bytes may begin there.
inline bool is_aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

}  // namespace trireme::ops
