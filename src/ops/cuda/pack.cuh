#pragma once

#include <cstdint>

namespace trireme::ops {

// Neighbouring elements that a thread reads or writes at once, in accesses of 16 bytes.
template <typename T, int Width>
struct alignas(sizeof(T) * Width < 16 ? sizeof(T) * Width : 16) Pack {
  T at[Width];
};

inline bool is_aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

}  // namespace trireme::ops
