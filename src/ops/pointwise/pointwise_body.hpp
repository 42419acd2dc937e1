#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/base/convert.hpp"
#include "trireme/math/elementary.hpp"
#include "trireme/ops/pointwise/broadcast.hpp"
#include "trireme/ops/pointwise/pointwise_kind.hpp"

// The formulas of ops/pointwise/pointwise.hpp with two operands, and the work of one thread of a GPU.
namespace trireme::ops {

template <typename T>
inline constexpr bool is_whole_number = std::is_integral_v<T>;

// Integers are computed as unsigned, for which overflow is defined.
template <typename T, typename Function>
TRIREME_HOST_DEVICE T wrapping(T a, T b, Function function) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(function(static_cast<U>(a), static_cast<U>(b))));
}

struct PointwiseAdd {
  template <typename T>
  TRIREME_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (is_whole_number<T>) {
      return wrapping(a, b, [](auto x, auto y) { return x + y; });
    } else {
      return a + b;
    }
  }
};

struct PointwiseSubtract {
  template <typename T>
  TRIREME_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (is_whole_number<T>) {
      return wrapping(a, b, [](auto x, auto y) { return x - y; });
    } else {
      return a - b;
    }
  }
};

struct PointwiseMultiply {
  template <typename T>
  TRIREME_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (is_whole_number<T>) {
      return wrapping(a, b, [](auto x, auto y) { return x * y; });
    } else {
      return a * b;
    }
  }
};

struct PointwiseDivide {
  template <typename T>
  TRIREME_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (is_whole_number<T>) {
      if (b == 0) return 0;
      return b == -1 ? PointwiseSubtract()(T(0), a) : a / b;  // the smallest integer divided by -1 wraps around to itself
    } else {
      return a / b;
    }
  }
};

struct PointwiseMinimum {
  template <typename T>
  TRIREME_HOST_DEVICE T operator()(T a, T b) const {
    return math::minimum(a, b);
  }
};

struct PointwiseMaximum {
  template <typename T>
  TRIREME_HOST_DEVICE T operator()(T a, T b) const {
    return math::maximum(a, b);
  }
};

struct PointwisePow {
  template <typename T>
  TRIREME_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (is_whole_number<T>) {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
      T power = 1;
      for (; b > 0; b /= 2) {
        if (b % 2 == 1) power = PointwiseMultiply()(power, a);
        a = PointwiseMultiply()(a, a);
      }
      return power;
    } else {
      return math::pow(a, b);
    }
  }
};

template <typename Visit>
TRIREME_HOST_DEVICE auto with_binary(Binary kind, Visit visit) {
  switch (kind) {
    case Binary::add: return visit(PointwiseAdd());
    case Binary::subtract: return visit(PointwiseSubtract());
    case Binary::multiply: return visit(PointwiseMultiply());
    case Binary::divide: return visit(PointwiseDivide());
    case Binary::minimum: return visit(PointwiseMinimum());
    case Binary::maximum: return visit(PointwiseMaximum());
    case Binary::pow: break;
  }
  return visit(PointwisePow());
}

// The derivative in the left or the right operand.
template <Binary kind, Side side>
struct PointwiseSlope {
  static constexpr bool left = side == Side::left;

  template <typename T>
  TRIREME_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (kind == Binary::add) return T(1);
    if constexpr (kind == Binary::subtract) return left ? T(1) : T(-1);
    if constexpr (kind == Binary::multiply) return left ? b : a;
    if constexpr (kind == Binary::divide) return left ? T(1) / b : -(a / b / b);
    if constexpr (kind == Binary::minimum) return share(left ? a > b : a < b, a == b, T());
    if constexpr (kind == Binary::maximum) return share(left ? a < b : a > b, a == b, T());
    if constexpr (kind == Binary::pow && left) return b == T(0) ? T(0) : b * math::pow(a, b - T(1));
    if constexpr (kind == Binary::pow && !left) return a == T(0) && b >= T(0) ? T(0) : math::pow(a, b) * math::natural_log(a);
  }

 private:
  template <typename T>
  TRIREME_HOST_DEVICE static T share(bool other, bool both, T) {
    return other ? T(0) : both ? T(0.5) : T(1);
  }
};

template <Side side, typename Visit>
TRIREME_HOST_DEVICE auto with_slope(Binary kind, Visit visit) {
  switch (kind) {
    case Binary::add: return visit(PointwiseSlope<Binary::add, side>());
    case Binary::subtract: return visit(PointwiseSlope<Binary::subtract, side>());
    case Binary::multiply: return visit(PointwiseSlope<Binary::multiply, side>());
    case Binary::divide: return visit(PointwiseSlope<Binary::divide, side>());
    case Binary::minimum: return visit(PointwiseSlope<Binary::minimum, side>());
    case Binary::maximum: return visit(PointwiseSlope<Binary::maximum, side>());
    case Binary::pow: break;
  }
  return visit(PointwiseSlope<Binary::pow, side>());
}
template <typename Visit>
TRIREME_HOST_DEVICE auto with_slope(Binary kind, Side side, Visit visit) {
  return side == Side::left ? with_slope<Side::left>(kind, visit) : with_slope<Side::right>(kind, visit);
}

template <Comparison kind>
struct PointwiseCompare {
  template <typename T>
  TRIREME_HOST_DEVICE bool operator()(T a, T b) const {
    if constexpr (kind == Comparison::eq) return a == b;
    if constexpr (kind == Comparison::ne) return a != b;
    if constexpr (kind == Comparison::lt) return a < b;
    if constexpr (kind == Comparison::le) return a <= b;
    if constexpr (kind == Comparison::gt) return a > b;
    if constexpr (kind == Comparison::ge) return a >= b;
  }
};

template <typename Visit>
TRIREME_HOST_DEVICE auto with_comparison(Comparison kind, Visit visit) {
  switch (kind) {
    case Comparison::eq: return visit(PointwiseCompare<Comparison::eq>());
    case Comparison::ne: return visit(PointwiseCompare<Comparison::ne>());
    case Comparison::lt: return visit(PointwiseCompare<Comparison::lt>());
    case Comparison::le: return visit(PointwiseCompare<Comparison::le>());
    case Comparison::gt: return visit(PointwiseCompare<Comparison::gt>());
    case Comparison::ge: break;
  }
  return visit(PointwiseCompare<Comparison::ge>());
}

// For bytes that are 0 or 1.
TRIREME_HOST_DEVICE std::uint8_t logical_of(Logical kind, std::uint8_t a, std::uint8_t b) {
  const unsigned left = a;
  const unsigned right = b;
  return static_cast<std::uint8_t>(kind == Logical::logical_and  ? left & right
                                   : kind == Logical::logical_or ? left | right
                                                                 : left ^ right);
}

template <typename T>
TRIREME_HOST_DEVICE bool tested(FloatTest kind, T x) {
  return kind == FloatTest::isnan ? math::is_nan(x) : kind == FloatTest::isinf ? math::is_infinite(x) : math::is_finite(x);
}

// Converts an element to the type that it is computed in. Integers and bits stay unchanged.
template <typename T>
TRIREME_HOST_DEVICE Accumulate<T> computed(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return widened(x);
  }
}
template <typename T>
TRIREME_HOST_DEVICE T element_of(Accumulate<T> x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return rounded<T>(x);
  }
}

// An operand as the argument of a kernel: a tensor's elements, or a number.
template <typename T>
struct OperandArgument {
  const T* data = nullptr;
  Accumulate<T> number = {};  // used if data is null

  TRIREME_HOST_DEVICE Accumulate<T> at(std::int64_t index) const { return data == nullptr ? number : computed(data[index]); }
};

// A thread for each element.
template <typename T>
struct BinaryElement {
  Broadcast plan;
  Binary kind;
  OperandArgument<T> a;
  OperandArgument<T> b;
  T* c;
  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const Accumulate<T> left = a.at(plan.offset(0, i));
    const Accumulate<T> right = b.at(plan.offset(1, i));
    c[i] = element_of<T>(with_binary(kind, [=](auto function) { return function(left, right); }));
  }
};

template <typename T>
struct BinarySlopeElement {
  Broadcast plan;
  Binary kind;
  Side side;
  OperandArgument<T> a;
  OperandArgument<T> b;
  const T* dy;
  T* dx;
  bool accumulate;
  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const Accumulate<T> left = a.at(plan.offset(0, i));
    const Accumulate<T> right = b.at(plan.offset(1, i));
    const Accumulate<T> slope = with_slope(kind, side, [=](auto function) { return function(left, right); });
    const Accumulate<T> product = widened(dy[i]) * slope;
    dx[i] = element_of<T>(accumulate ? widened(dx[i]) + product : product);
  }
};

template <typename T>
struct CompareElement {
  Broadcast plan;
  Comparison kind;
  OperandArgument<T> a;
  OperandArgument<T> b;
  bool* mask;
  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const Accumulate<T> left = a.at(plan.offset(0, i));
    const Accumulate<T> right = b.at(plan.offset(1, i));
    mask[i] = with_comparison(kind, [=](auto function) { return function(left, right); });
  }
};

struct LogicalElement {
  Broadcast plan;
  Logical kind;
  const std::uint8_t* a;
  const std::uint8_t* b;
  std::uint8_t* c;
  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    c[i] = logical_of(kind, a[plan.offset(0, i)], b[plan.offset(1, i)]);
  }
};

// Operands: mask, a, b. Bits has the size of an element.
template <typename Bits>
struct WhereElement {
  Broadcast plan;
  const bool* mask;
  OperandArgument<Bits> a;
  OperandArgument<Bits> b;
  Bits* c;
  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    c[i] = mask[plan.offset(0, i)] ? a.at(plan.offset(1, i)) : b.at(plan.offset(2, i));
  }
};

}  // namespace trireme::ops
