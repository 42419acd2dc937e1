#include "comm/reduce_kernels.hpp"

#include <cstdint>

namespace trireme::comm {
namespace TRIREME_ISA {
namespace {

struct Sum {
  template <typename T>
  [[gnu::always_inline]] static T combine(T a, T b) {
    return a + b;
  }
};
struct Min {
  template <typename T>
  [[gnu::always_inline]] static T combine(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <typename T>
  [[gnu::always_inline]] static T combine(T a, T b) {
    return a < b ? b : a;
  }
};

constexpr std::size_t block_bytes = 8192;  // the running result stays in the first-level cache

// Two ranks, the result in both copies: one pass without a running result.
template <typename T, typename Op, bool mean>
void reduce_pair(T* a, T* b, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    T value = Op::combine(a[i], b[i]);
    if constexpr (mean) value /= T{2};
    a[i] = value;
    b[i] = value;
  }
}

template <typename T, typename Op>
void add_block(T* result, const T* values, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) result[i] = Op::combine(result[i], values[i]);
}

template <typename T, typename Op, bool mean>
void reduce(const void* const* from, std::size_t sources, void* const* to, std::size_t targets, std::size_t count) {
  if (sources == 2 && targets == 2 && from[0] == to[0] && from[1] == to[1]) {
    return reduce_pair<T, Op, mean>(static_cast<T*>(to[0]), static_cast<T*>(to[1]), count);
  }
  constexpr std::size_t block = block_bytes / sizeof(T);
  alignas(64) T result[block];
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t size = count - begin < block ? count - begin : block;
    __builtin_memcpy(result, static_cast<const T*>(from[0]) + begin, size * sizeof(T));
    for (std::size_t source = 1; source < sources; ++source) {
      add_block<T, Op>(result, static_cast<const T*>(from[source]) + begin, size);
    }
    if constexpr (mean) {
      const T divisor = static_cast<T>(sources);
#pragma omp simd
      for (std::size_t i = 0; i < size; ++i) result[i] /= divisor;
    }
    for (std::size_t target = 0; target < targets; ++target) {
      __builtin_memcpy(static_cast<T*>(to[target]) + begin, result, size * sizeof(T));
    }
  }
}

template <typename T>
constexpr ReduceKernelsOfType kernels_of = {
    .sum = reduce<T, Sum, false>,
    .min = reduce<T, Min, false>,
    .max = reduce<T, Max, false>,
    .mean = reduce<T, Sum, true>,
};

}  // namespace

const ReduceKernels reduce_kernels = {
    .float32 = kernels_of<float>,
    .float64 = kernels_of<double>,
    .int32 = kernels_of<std::int32_t>,
    .int64 = kernels_of<std::int64_t>,
    .uint64 = kernels_of<std::uint64_t>,
};

}  // namespace TRIREME_ISA
}  // namespace trireme::comm
