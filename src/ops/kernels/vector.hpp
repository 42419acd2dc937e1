#pragma once

#include <cstdint>

namespace trireme::ops::TRIREME_ISA {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
inline constexpr int num_registers = 32;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
inline constexpr int num_registers = 16;
#else
inline constexpr int vector_bytes = 16;
inline constexpr int num_registers = 16;
#endif

template <typename T>
inline constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

// One register of elements, at any address.
template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(vector_bytes), aligned(alignof(T)), may_alias));
};
template <typename T>
using Vector = typename VectorOf<T>::type;

template <typename T>
constexpr std::int64_t round_up(std::int64_t count) {
  return (count + lanes<T> - 1) / lanes<T> * lanes<T>;
}

}  // namespace trireme::ops::TRIREME_ISA
