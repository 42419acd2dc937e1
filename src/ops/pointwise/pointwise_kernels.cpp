#include "ops/pointwise/pointwise_kernels.hpp"

#include "ops/pointwise/pointwise_body.hpp"
#include "ops/pointwise/unary_body.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

// c[i] = function(a[i], b[i]), where one of the operands may be repeated.
template <typename T, typename C, typename Function>
TRIREME_HOST_DEVICE void map_pairs(ElementRun<T> a, ElementRun<T> b, C* c, std::int64_t count, Function function) {
  if (a.repeated) {
    const T left = *a.data;
    const T* right = b.data;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) c[i] = function(left, right[i]);
  } else if (b.repeated) {
    const T* left = a.data;
    const T right = *b.data;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) c[i] = function(left[i], right);
  } else {
    const T* left = a.data;
    const T* right = b.data;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) c[i] = function(left[i], right[i]);
  }
}

template <typename T, typename C, typename Function>
TRIREME_HOST_DEVICE void map_each(const T* x, C* y, std::int64_t count, Function function) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = function(x[i]);
}

// Computes powers that need no pow(). Returns whether `exponent` is one of them.
template <typename T>
bool pointwise_power(const T* x, T exponent, T* y, std::int64_t count) {
  if (exponent == T(2)) return map_each(x, y, count, [](T of) { return of * of; }), true;
  if (exponent == T(1)) return map_each(x, y, count, [](T of) { return of; }), true;
  if (exponent == T(0.5)) return map_each(x, y, count, [](T of) { return math::square_root(of); }), true;
  if (exponent == T(-0.5)) return map_each(x, y, count, [](T of) { return T(1) / math::square_root(of); }), true;
  if (exponent == T(-1)) return map_each(x, y, count, [](T of) { return T(1) / of; }), true;
  if (exponent == T(3)) return map_each(x, y, count, [](T of) { return of * of * of; }), true;
  return false;
}

template <typename T>
void pointwise_binary(Binary kind, ElementRun<T> a, ElementRun<T> b, T* c, std::int64_t count) {
  if constexpr (std::is_floating_point_v<T>) {
    if (kind == Binary::pow && b.repeated && pointwise_power(a.data, *b.data, c, count)) return;
  }
  with_binary(kind, [=](auto function) { map_pairs(a, b, c, count, function); });
}

template <typename T>
void pointwise_slope(Binary kind, Side side, ElementRun<T> a, ElementRun<T> b, T* slope, std::int64_t count) {
  if (kind == Binary::pow && side == Side::left && b.repeated && *b.data != T(0)) {
    const T exponent = *b.data;
    if (pointwise_power(a.data, exponent - T(1), slope, count)) {
      return map_each(slope, slope, count, [=](T power) { return exponent * power; });
    }
  }
  with_slope(kind, side, [=](auto function) { map_pairs(a, b, slope, count, function); });
}

// y = sign times the sine or cosine, vectorized. The C library computes angles that are too large for this, and NaN.
void map_angles(Unary kind, float sign, const float* x, float* y, std::int64_t count) {
  constexpr std::int64_t block = 256;
  for (std::int64_t first = 0; first < count; first += block) {
    const std::int64_t size = count - first < block ? count - first : block;
    float at[block];
    float moderate[block];
    int large = 0;
#pragma omp simd reduction(| : large)
    for (std::int64_t i = 0; i < size; ++i) {
      at[i] = x[first + i];
      const bool fits = math::absolute(at[i]) < math::largest_angle;
      moderate[i] = fits ? at[i] : 0.0f;
      large |= fits ? 0 : 1;
    }
    float* to = y + first;
    if (kind == Unary::sin) {
      map_each(moderate, to, size, [=](float of) { return sign * math::sine(of); });
    } else {
      map_each(moderate, to, size, [=](float of) { return sign * math::cosine(of); });
    }
    if (large == 0) continue;
    for (std::int64_t i = 0; i < size; ++i) {
      if (math::absolute(at[i]) < math::largest_angle) continue;
      to[i] = sign * (kind == Unary::sin ? math::sin(at[i]) : math::cos(at[i]));
    }
  }
}

template <typename T>
void pointwise_unary(Unary kind, T first, T second, const T* x, T* y, std::int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    if (kind == Unary::sin || kind == Unary::cos) return map_angles(kind, 1, x, y, count);
  }
  with_unary_of<T>(kind, [=](auto formula) { map_each(x, y, count, [=](T of) { return formula.value(of, first, second); }); });
}

template <typename T>
void pointwise_unary_slope(Unary kind, T first, T second, const T* x, T* slope, std::int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    if (kind == Unary::sin) return map_angles(Unary::cos, 1, x, slope, count);
    if (kind == Unary::cos) return map_angles(Unary::sin, -1, x, slope, count);
  }
  with_unary(kind,
             [=](auto formula) { map_each(x, slope, count, [=](T of) { return formula.derivative(of, first, second); }); });
}

template <typename T>
void pointwise_compare(Comparison kind, ElementRun<T> a, ElementRun<T> b, bool* mask, std::int64_t count) {
  with_comparison(kind, [=](auto function) { map_pairs(a, b, mask, count, function); });
}

template <typename T>
void pointwise_test(FloatTest kind, const T* x, bool* mask, std::int64_t count) {
  if (kind == FloatTest::isnan) return map_each(x, mask, count, [](T of) { return math::is_nan(of); });
  if (kind == FloatTest::isinf) return map_each(x, mask, count, [](T of) { return math::is_infinite(of); });
  map_each(x, mask, count, [](T of) { return math::is_finite(of); });
}

void pointwise_logical(Logical kind, ElementRun<std::uint8_t> a, ElementRun<std::uint8_t> b, std::uint8_t* c,
                       std::int64_t count) {
  map_pairs(a, b, c, count, [=](std::uint8_t left, std::uint8_t right) { return logical_of(kind, left, right); });
}

template <typename Bits>
void pointwise_where(const bool* mask, ElementRun<Bits> a, ElementRun<Bits> b, Bits* c, std::int64_t count) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(mask);
  const Bits* left = a.data;
  const Bits* right = b.data;
  if (a.repeated && b.repeated) {
    const Bits one = *left;
    const Bits other = *right;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) c[i] = bytes[i] != 0 ? one : other;
  } else if (a.repeated) {
    const Bits one = *left;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) c[i] = bytes[i] != 0 ? one : right[i];
  } else if (b.repeated) {
    const Bits other = *right;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) c[i] = bytes[i] != 0 ? left[i] : other;
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) c[i] = bytes[i] != 0 ? left[i] : right[i];
  }
}

template <typename T>
constexpr PointwiseKernels<T> float_kernels{pointwise_binary<T>,      pointwise_slope<T>,   pointwise_unary<T>,
                                            pointwise_unary_slope<T>, pointwise_compare<T>, pointwise_test<T>};
template <typename T>
constexpr PointwiseKernels<T> whole_kernels{pointwise_binary<T>,  nullptr, pointwise_unary<T>, nullptr,
                                            pointwise_compare<T>, nullptr};

}  // namespace

const PointwiseTable pointwise_kernels{float_kernels<float>,
                                       float_kernels<double>,
                                       whole_kernels<std::int32_t>,
                                       whole_kernels<std::int64_t>,
                                       pointwise_logical,
                                       pointwise_where<std::uint8_t>,
                                       pointwise_where<std::uint16_t>,
                                       pointwise_where<std::uint32_t>,
                                       pointwise_where<std::uint64_t>};

}  // namespace trireme::ops::TRIREME_ISA
