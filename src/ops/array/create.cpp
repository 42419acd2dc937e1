#include "trireme/ops/array/create.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/array/create_on.hpp"
#include "ops/base/convert.hpp"
#include "ops/base/parallel.hpp"
#include "precision/instantiate.hpp"
#include "trireme/core/philox.hpp"

namespace trireme::ops {
namespace {

template <typename T>
constexpr int digits_of = std::is_same_v<T, bfloat16>  ? 8
                          : std::is_same_v<T, float16> ? 11
                                                       : std::numeric_limits<T>::digits;

}  // namespace

std::int64_t arange_count(double begin, double end, double step) {
  require(std::isfinite(begin) && std::isfinite(end) && std::isfinite(step) && step != 0,
          "arange: from {} to {} by {} is not possible: all must be finite, and the step not 0", begin, end, step);
  const double count = std::ceil((end - begin) / step);
  require(count >= 0, "arange: from {} to {} is the opposite direction of the step {}", begin, end, step);
  require(count < 0x1p53, "arange: from {} to {} by {} are too many elements", begin, end, step);
  return static_cast<std::int64_t>(count);
}

Line linspace_line(double begin, double end, std::int64_t count) {
  const double steps = count > 1 ? static_cast<double>(count - 1) : 1;
  return {.first = begin, .step = (end - begin) / steps, .last = end, .ends = count > 1};
}

template <typename T>
void fill_random(RandomKind kind, const RandomElements& of, double a, double b, Tensor<T, Cpu>& y) {
  require_defined("random", "y", y);
  require(of.first >= 0, "random: the first element has the number {}, but must not be below 0", of.first);
  require(std::isfinite(a) && std::isfinite(b), "random: the bounds, or mean and deviation, are {} and {}, but must be finite",
          a, b);
  require(kind != RandomKind::normal || b >= 0, "random: the standard deviation is {}, but must not be below 0", b);
  require(kind != RandomKind::uniform || a <= b, "random: the lower bound {} is above the upper bound {}", a, b);
  require(kind != RandomKind::whole || (a < b && b - a <= 0x1p53), "random: there is no integer in [{}, {}), or more than 2^53",
          a, b);
  // Cuts off the digits that T does not have, because rounding could give the upper bound.
  const double digits = std::ldexp(1.0, std::is_integral_v<T> ? 53 : digits_of<T>);
  const std::uint64_t stream = hash_name(of.stream);
  const auto drawn = [=](std::int64_t i) {
    const auto number = static_cast<std::uint64_t>(of.first + i);
    if (kind == RandomKind::normal) return a + b * philox_normal(of.seed, stream, number);
    const double share = std::floor(philox_uniform(of.seed, stream, number) * digits) / digits;
    return kind == RandomKind::uniform ? a + (b - a) * share : a + std::floor((b - a) * share);
  };
  parallel_elements(y.numel(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_integral_v<T>) {
        y.data()[i] = static_cast<T>(drawn(i));
      } else {
        y.data()[i] = rounded<T>(static_cast<Accumulate<T>>(drawn(i)));
        // Where rounding has given the upper bound all the same, takes a smaller number.
        for (double less = 1 / digits; kind == RandomKind::uniform && a < b && less <= 1 &&
                                       static_cast<double>(static_cast<Accumulate<T>>(y.data()[i])) >= b;
             less *= 2) {
          y.data()[i] = rounded<T>(static_cast<Accumulate<T>>(b - (b - a) * less));
        }
      }
    }
  });
}

TRIREME_INSTANTIATE(NUMBERS, fill_random)

// Each row is a run of zeros, a run of elements and a run of zeros, any of which may be empty.
template <>
void Creates<Cpu>::triangle(const TriangleSizes& sizes, int element_bytes, std::int64_t count, const void* x, void* y) {
  const std::int64_t rows = count / sizes.columns;
  parallel_rows(rows, sizes.columns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row % sizes.rows + sizes.diagonal;
      const std::int64_t first = sizes.upper ? std::clamp<std::int64_t>(at, 0, sizes.columns) : 0;
      const std::int64_t last = sizes.upper ? sizes.columns : std::clamp<std::int64_t>(at + 1, 0, sizes.columns);
      const auto offset = [&](std::int64_t column) { return (row * sizes.columns + column) * element_bytes; };
      const auto bytes = [&](std::int64_t columns) { return static_cast<std::size_t>(columns * element_bytes); };
      auto* to = static_cast<std::byte*>(y);
      std::memset(to + offset(0), 0, bytes(first));
      std::memmove(to + offset(first), static_cast<const std::byte*>(x) + offset(first), bytes(last - first));
      std::memset(to + offset(last), 0, bytes(sizes.columns - last));
    }
  });
}

template <>
template <typename T>
void Creates<Cpu>::line(const FillLine<T>& body) {
  parallel_elements(body.count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

TRIREME_INSTANTIATE(ELEMENTS, take_triangle, Cpu)
TRIREME_INSTANTIATE(NUMBERS, fill_line, Cpu)
TRIREME_INSTANTIATE(ELEMENTS, fill_eye, Cpu)

}  // namespace trireme::ops
