#include "comm/reduce.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

struct Sum {
  template <typename T>
  static T combine(T a, T b) {
    return a + b;
  }
};
struct Min {
  template <typename T>
  static T combine(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <typename T>
  static T combine(T a, T b) {
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

template <typename T, typename Op, bool mean>
void reduce_blocks(std::span<const std::byte* const> from, std::span<std::byte* const> to, std::size_t count) {
  constexpr std::size_t block = block_bytes / sizeof(T);
  alignas(64) std::array<T, block> result;
  const T divisor = static_cast<T>(from.size());
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t size = std::min(block, count - begin);
    std::copy_n(reinterpret_cast<const T*>(from[0]) + begin, size, result.data());
    for (std::size_t rank = 1; rank < from.size(); ++rank) {
      const T* values = reinterpret_cast<const T*>(from[rank]) + begin;
#pragma omp simd
      for (std::size_t i = 0; i < size; ++i) result[i] = Op::combine(result[i], values[i]);
    }
    if constexpr (mean) {
#pragma omp simd
      for (std::size_t i = 0; i < size; ++i) result[i] /= divisor;
    }
    for (std::byte* target : to) std::copy_n(result.data(), size, reinterpret_cast<T*>(target) + begin);
  }
}

template <typename T, typename Op, bool mean = false>
void reduce_with(std::span<const std::byte* const> from, std::span<std::byte* const> to, std::size_t count) {
  if (from.size() == 2 && to.size() == 2 && from[0] == to[0] && from[1] == to[1]) {
    return reduce_pair<T, Op, mean>(reinterpret_cast<T*>(to[0]), reinterpret_cast<T*>(to[1]), count);
  }
  reduce_blocks<T, Op, mean>(from, to, count);
}

template <typename T>
void reduce_as(ReduceOp op, std::span<const std::byte* const> from, std::span<std::byte* const> to, std::size_t count) {
  switch (op) {
    case ReduceOp::sum: return reduce_with<T, Sum>(from, to, count);
    case ReduceOp::min: return reduce_with<T, Min>(from, to, count);
    case ReduceOp::max: return reduce_with<T, Max>(from, to, count);
    case ReduceOp::mean: return reduce_with<T, Sum, true>(from, to, count);
  }
}

}  // namespace

bool reducible(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || dtype == DType::int32 || dtype == DType::int64 ||
         dtype == DType::uint64;
}

void reduce(ReduceOp op, DType dtype, std::span<const std::byte* const> from, std::span<std::byte* const> to,
            std::size_t count) {
  switch (dtype) {
    case DType::float32: return reduce_as<float>(op, from, to, count);
    case DType::float64: return reduce_as<double>(op, from, to, count);
    case DType::int32: return reduce_as<std::int32_t>(op, from, to, count);
    case DType::int64: return reduce_as<std::int64_t>(op, from, to, count);
    case DType::uint64: return reduce_as<std::uint64_t>(op, from, to, count);
    default: require(false, "no arithmetic for {} in collectives", name_of(dtype));
  }
}

}  // namespace trireme::comm
