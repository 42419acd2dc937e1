#pragma once

#include <limits>
#include <type_traits>

#include "ops/base/convert.hpp"
#include "ops/reduce/reduce_sizes.hpp"
#include "trireme/math/exponential.hpp"

// The operations of ops/reduce/reductions.hpp, for one element. Elements are reduced in their Wide type: double for all floats,
// std::int64_t for integers.
namespace trireme::ops {

template <typename T>
using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

TRIREME_HOST_DEVICE std::int64_t widened(std::int32_t x) { return x; }
TRIREME_HOST_DEVICE std::int64_t widened(std::int64_t x) { return x; }
TRIREME_HOST_DEVICE std::int64_t widened(bool x) { return x ? 1 : 0; }

// The terms of a reduction, which are summed, multiplied or compared. `shift` is a number for each result.
enum class Accumulation : std::uint8_t {
  sum,                // of x
  magnitudes,         // of |x|
  squares,            // of x^2
  deviations,         // of (x - shift)^2
  exponentials,       // of exp(x - shift)
  equals,             // how many x are equal to the shift
  equal_magnitudes,   // how many |x| are equal to the shift
  product,            // of x
  maximum,            // of x
  minimum,            // of x
  largest_magnitude,  // of |x|
};

// The kind that combines results of parts.
TRIREME_HOST_DEVICE Accumulation accumulation_of_parts(Accumulation kind) {
  switch (kind) {
    case Accumulation::product:
    case Accumulation::maximum:
    case Accumulation::minimum: return kind;
    case Accumulation::largest_magnitude: return Accumulation::maximum;
    default: return Accumulation::sum;
  }
}

// The lowest and the highest number of a type.
template <typename W>
TRIREME_HOST_DEVICE W lowest_of() {
  if constexpr (std::is_integral_v<W>) return std::numeric_limits<W>::lowest();
  if constexpr (!std::is_integral_v<W>) return -std::numeric_limits<W>::infinity();
}
template <typename W>
TRIREME_HOST_DEVICE W highest_of() {
  if constexpr (std::is_integral_v<W>) return std::numeric_limits<W>::max();
  if constexpr (!std::is_integral_v<W>) return std::numeric_limits<W>::infinity();
}

// The result of no elements.
template <typename W>
TRIREME_HOST_DEVICE W nothing(Accumulation kind) {
  switch (kind) {
    case Accumulation::product: return W(1);
    case Accumulation::maximum: return lowest_of<W>();
    case Accumulation::minimum: return highest_of<W>();
    default: return W(0);
  }
}

// X: float or double; or an integer type, for sum, maximum and minimum.
template <typename X, typename W>
TRIREME_HOST_DEVICE W accumulated(Accumulation kind, X x, W shift) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(x);
  } else {
    const W wide = static_cast<W>(x);
    switch (kind) {
      case Accumulation::magnitudes:
      case Accumulation::largest_magnitude: return math::absolute(wide);
      case Accumulation::squares: return wide * wide;
      case Accumulation::deviations: return (wide - shift) * (wide - shift);
      case Accumulation::exponentials: return static_cast<W>(math::exp(static_cast<X>(wide - shift)));
      case Accumulation::equals: return wide == shift ? W(1) : W(0);
      case Accumulation::equal_magnitudes: return math::absolute(wide) == shift ? W(1) : W(0);
      default: return wide;
    }
  }
}

// Maxima and minima are NaN if a or b is NaN. Both conditions are computed, so that loops can be vectorized.
template <typename W>
TRIREME_HOST_DEVICE W combined(Accumulation kind, W a, W b) {
  switch (kind) {
    case Accumulation::product: return a * b;
    case Accumulation::maximum:
    case Accumulation::largest_magnitude: return ((a > b) | (a != a)) ? a : b;
    case Accumulation::minimum: return ((a < b) | (a != a)) ? a : b;
    default: return a + b;
  }
}

// How y is computed from an accumulated value.
enum class Finish : std::uint8_t {
  itself,     // the value
  quotient,   // value / divisor
  root,       // its square root
  logarithm,  // shift + log(value)
  finite,     // value, or 0 if that is infinite
  truth,      // whether the value is above 0
};

// A thread for each result. V: W, or the element type of a tensor of results.
template <typename Y, typename V>
struct FinishReduction {
  Finish kind;
  const V* values;
  const double* shift;
  double divisor;
  Y* y;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const { write(kind, i); }

  // `which` may be a constant or a variable.
  TRIREME_HOST_DEVICE void write(Finish which, std::int64_t i) const {
    if constexpr (std::is_same_v<Y, bool>) {
      y[i] = values[i] > 0;
    } else if constexpr (std::is_integral_v<Y>) {
      y[i] = static_cast<Y>(values[i]);
    } else {
      const double value = static_cast<double>(widened(values[i]));
      const double result = finished(which, value, i);
      if constexpr (std::is_same_v<Y, double>) {
        y[i] = result;
      } else {
        y[i] = rounded<Y>(static_cast<float>(result));
      }
    }
  }

 private:
  TRIREME_HOST_DEVICE double finished(Finish which, double value, std::int64_t i) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    switch (which) {
      case Finish::quotient: return value / divisor;
      case Finish::root: return math::square_root(value / divisor);
      case Finish::logarithm: return shift[i] + math::log(value);
      case Finish::finite: return math::absolute(value) == infinity ? 0 : value;
      default: return value;
    }
  }
};

// A thread for each i of [outer, parts, inner] reduces every `parts`-th element of a result. The order depends on the sizes
// alone.
template <typename T>
struct ReduceParts {
  using W = Wide<T>;

  Accumulation kind;
  ReduceSizes sizes;
  std::int64_t parts;
  const T* x;
  const W* shift;  // [outer, inner] or null
  W* sums;         // [outer, parts, inner]

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t j = i % sizes.inner;
    const std::int64_t part = i / sizes.inner % parts;
    const std::int64_t o = i / sizes.inner / parts;
    const W of_result = shift == nullptr ? W(0) : shift[o * sizes.inner + j];
    const T* from = x + o * sizes.reduced * sizes.inner + j;
    W total = nothing<W>(kind);
    for (std::int64_t r = part; r < sizes.reduced; r += parts) {
      total = combined(kind, total, accumulated(kind, widened(from[r * sizes.inner]), of_result));
    }
    sums[i] = total;
  }
};

// Gradients are scale * slope. The scale is a number for each result: dy times a factor.
enum class Scaling : std::uint8_t { times, quotient, quotient_or_zero };

// A thread for each result: factor * dy, or factor * dy / by.
template <typename T>
struct GradientScale {
  Scaling kind;
  double factor;
  const T* dy;
  const double* by;
  double* scale;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const double gradient = factor * static_cast<double>(widened(dy[i]));
    if (kind == Scaling::times) {
      scale[i] = gradient;
    } else {
      scale[i] = kind == Scaling::quotient_or_zero && by[i] == 0 ? 0 : gradient / by[i];
    }
  }
};

enum class Slope : std::uint8_t {
  one,
  itself,           // x
  sign,             // of x
  deviation,        // x - shift
  exponential,      // exp(x - shift)
  equal,            // 1 where x is equal to the shift, else 0
  equal_magnitude,  // the sign of x where |x| is equal to the shift, else 0
};

template <typename W>
TRIREME_HOST_DEVICE W sign_of(W x) {
  return x > 0 ? W(1) : x < 0 ? W(-1) : x;  // 0 and NaN stay unchanged
}

template <typename X>
TRIREME_HOST_DEVICE double slope_at(Slope kind, X x, double shift) {
  const double wide = x;
  switch (kind) {
    case Slope::itself: return wide;
    case Slope::sign: return sign_of(wide);
    case Slope::deviation: return wide - shift;
    case Slope::exponential: return static_cast<double>(math::exp(static_cast<X>(wide - shift)));
    case Slope::equal: return wide == shift ? 1 : 0;
    case Slope::equal_magnitude: return math::absolute(wide) == shift ? sign_of(wide) : 0;
    default: return 1;
  }
}

// A thread for each element.
template <typename T>
struct ReductionGradient {
  Slope kind;
  ReduceSizes sizes;
  const T* x;  // null for Slope::one
  const double* scale;
  const double* shift;  // or null
  T* dx;
  bool accumulate;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    using A = Accumulate<T>;
    const std::int64_t result = i / sizes.inner / sizes.reduced * sizes.inner + i % sizes.inner;
    const A at = x == nullptr ? A(0) : widened(x[i]);
    const A value = static_cast<A>(scale[result] * slope_at(kind, at, shift == nullptr ? 0 : shift[result]));
    dx[i] = rounded<T>(accumulate ? widened(dx[i]) + value : value);
  }
};

// dx = dy * the product of all other elements, computed without division, so that it is right if elements are 0. The elements
// of a result are cut into `chunks`; a thread for each i of [outer, chunks, inner].
template <typename T>
struct ProductGradient {
  ReduceSizes sizes;
  std::int64_t chunks;
  const T* x;
  const double* products;  // [outer, chunks, inner], product of each chunk; not read if there is one chunk
  const double* dy;
  double* before;  // shape of x; scratch memory for the products of the elements before each
  T* dx;
  bool accumulate;

  TRIREME_HOST_DEVICE std::int64_t first_of(std::int64_t chunk) const { return sizes.reduced * chunk / chunks; }

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    using A = Accumulate<T>;
    const std::int64_t j = i % sizes.inner;
    const std::int64_t chunk = i / sizes.inner % chunks;
    const std::int64_t o = i / sizes.inner / chunks;
    const std::int64_t end = first_of(chunk + 1);
    double product = dy[o * sizes.inner + j];
    for (std::int64_t c = 0; c < chunk; ++c) product *= products[(o * chunks + c) * sizes.inner + j];
    for (std::int64_t r = first_of(chunk); r < end; ++r) {
      const std::int64_t place = (o * sizes.reduced + r) * sizes.inner + j;
      before[place] = product;
      product *= static_cast<double>(widened(x[place]));
    }
    double behind = 1;
    for (std::int64_t c = chunk + 1; c < chunks; ++c) behind *= products[(o * chunks + c) * sizes.inner + j];
    for (std::int64_t r = end; r-- > first_of(chunk);) {
      const std::int64_t place = (o * sizes.reduced + r) * sizes.inner + j;
      const A value = static_cast<A>(before[place] * behind);
      dx[place] = rounded<T>(accumulate ? widened(dx[place]) + value : value);
      behind *= static_cast<double>(widened(x[place]));
    }
  }
};

// The product of each chunk, for ProductGradient, with the same threads.
template <typename T>
struct ChunkProduct {
  ReduceSizes sizes;
  std::int64_t chunks;
  const T* x;
  double* products;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t j = i % sizes.inner;
    const std::int64_t chunk = i / sizes.inner % chunks;
    const std::int64_t o = i / sizes.inner / chunks;
    double product = 1;
    for (std::int64_t r = sizes.reduced * chunk / chunks; r < sizes.reduced * (chunk + 1) / chunks; ++r) {
      product *= static_cast<double>(widened(x[(o * sizes.reduced + r) * sizes.inner + j]));
    }
    products[i] = product;
  }
};

}  // namespace trireme::ops
