#pragma once

#include <cstdint>

#include "trireme/core/host_device.hpp"

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

// A vector at any address. A type loses its alignment attribute as a template argument, so clang would assume aligned pointers.
template <typename V>
struct [[gnu::packed]] Unaligned {
  V vector;
};
template <typename V, typename T>
TRIREME_HOST_DEVICE V load(const T* data) {
  return reinterpret_cast<const Unaligned<V>*>(data)->vector;
}
template <typename V, typename T>
TRIREME_HOST_DEVICE void store(T* data, V vector) {
  reinterpret_cast<Unaligned<V>*>(data)->vector = vector;
}

template <typename T>
constexpr std::int64_t round_up(std::int64_t count) {
  return (count + lanes<T> - 1) / lanes<T> * lanes<T>;
}

// The sum of value(0) to value(count - 1), in 2 * lanes running sums. A reduction clause would add up the lanes one by one.
template <typename T, typename Index, typename Value>
TRIREME_HOST_DEVICE T sum_of(Index count, Value value) {
  constexpr int parts = 2 * lanes<T>;
  T sums[parts] = {};
  Index i = 0;
  for (; i + parts <= count; i += parts) {
#pragma omp simd
    for (int part = 0; part < parts; ++part) sums[part] += value(i + part);
  }
  for (int part = 0; i < count; ++i, ++part) sums[part] += value(i);
#pragma GCC unroll 8
  for (int half = parts / 2; half > 0; half /= 2) {
#pragma omp simd
    for (int part = 0; part < half; ++part) sums[part] += sums[part + half];
  }
  return sums[0];
}

}  // namespace trireme::ops::TRIREME_ISA
