#include "comm/reduce/reduce_kernels.hpp"

#include <cstdint>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::comm {
namespace TRIREME_ISA {
namespace {

struct Sum {
  template <typename T>
  [[gnu::always_inline]] static T combine(T a, T b) {
    return a + b;
  }
};
// A NaN stays, whichever of the two has it: the result must not depend on the order of ranks.
struct Min {
  template <typename T>
  [[gnu::always_inline]] static T combine(T a, T b) {
    return b < a || b != b ? b : a;
  }
};
struct Max {
  template <typename T>
  [[gnu::always_inline]] static T combine(T a, T b) {
    return a < b || b != b ? b : a;
  }
};

// Reduces the data of two ranks into one copy or both, in one pass. Half precision is reduced in float and rounded once.
template <typename T, typename Op, bool mean, std::size_t targets>
void reduce_pair(const void* const* from, void* const* to, std::size_t count) {
  using A = Accumulate<T>;
  const T* a = static_cast<const T*>(from[0]);
  const T* b = static_cast<const T*>(from[1]);
  T* first = static_cast<T*>(to[0]);
  T* last = static_cast<T*>(to[targets - 1]);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    A value = Op::combine(static_cast<A>(a[i]), static_cast<A>(b[i]));
    if constexpr (mean) value /= A{2};
    first[i] = static_cast<T>(value);
    if constexpr (targets == 2) last[i] = static_cast<T>(value);
  }
}

template <typename Op, typename A, typename V>
void combine_block(A* result, const V* values, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) result[i] = Op::combine(result[i], static_cast<A>(values[i]));
}

template <typename T, typename A>
void divide_block(A* result, std::size_t count, T divisor) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<A>(static_cast<T>(result[i]) / divisor);
}

template <typename T, typename A>
void store_block(T* target, const A* result, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) target[i] = static_cast<T>(result[i]);
}

constexpr std::size_t block_bytes = 8192;  // keeps a partial result in the first-level cache

// Reduces elements [begin, begin + count) of all sources in their tree.
template <typename T, typename Op, typename A>
void reduce_tree(const void* const* from, std::size_t sources, std::size_t begin, std::size_t count, A* result) {
  if (sources == 1) return store_block(result, static_cast<const T*>(from[0]) + begin, count);
  std::size_t left = 1;
  while (2 * left < sources) left *= 2;
  reduce_tree<T, Op>(from, left, begin, count, result);
  if (sources - left == 1) return combine_block<Op>(result, static_cast<const T*>(from[left]) + begin, count);
  alignas(64) A right[block_bytes / sizeof(A)];
  reduce_tree<T, Op>(from + left, sources - left, begin, count, right);
  combine_block<Op>(result, right, count);
}

template <typename T, typename Op, bool mean>
void reduce(const void* const* from, std::size_t sources, void* const* to, std::size_t targets, std::size_t count) {
  using A = Accumulate<T>;
  if (sources == 2 && targets == 1) return reduce_pair<T, Op, mean, 1>(from, to, count);
  if (sources == 2 && targets == 2) return reduce_pair<T, Op, mean, 2>(from, to, count);
  constexpr std::size_t block = block_bytes / sizeof(A);
  alignas(64) A result[block];
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t size = count - begin < block ? count - begin : block;
    reduce_tree<T, Op>(from, sources, begin, size, result);
    if constexpr (mean) divide_block(result, size, static_cast<A>(sources));
    for (std::size_t target = 0; target < targets; ++target) store_block(static_cast<T*>(to[target]) + begin, result, size);
  }
}

template <typename T>
void divide(void* data, std::size_t count, int divisor) {
  divide_block(static_cast<T*>(data), count, static_cast<Accumulate<T>>(divisor));
}

template <typename T>
constexpr ReduceKernelsOfType kernels_of = {
    .sum = reduce<T, Sum, false>,
    .min = reduce<T, Min, false>,
    .max = reduce<T, Max, false>,
    .mean = reduce<T, Sum, true>,
    .divide = divide<T>,
};

}  // namespace

const ReduceKernels reduce_kernels = {
    .float32 = kernels_of<float>,
    .float64 = kernels_of<double>,
    .int32 = kernels_of<std::int32_t>,
    .int64 = kernels_of<std::int64_t>,
    .uint64 = kernels_of<std::uint64_t>,
    .bfloat16 = kernels_of<bfloat16>,
    .float16 = kernels_of<float16>,
};

}  // namespace TRIREME_ISA
}  // namespace trireme::comm
