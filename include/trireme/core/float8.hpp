#pragma once

#include <bit>
#include <cstdint>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/host_device.hpp"

namespace trireme TRIREME_EXPORT {

namespace detail {

// 8-bit floating point (Micikevicius et al. 2022, arXiv 2209.05433). For storage: arithmetic converts to float.
template <typename Type, int ExponentBits>
class Float8 {
  static constexpr bool is_e4m3 = ExponentBits == 4;
  static_assert(is_e4m3 || ExponentBits == 5);

 public:
  static constexpr float largest = is_e4m3 ? 448.0F : 57344.0F;

  Float8() = default;

  // Rounds to nearest, ties to even; values beyond `largest`, also infinities, become `largest`; NaN stays NaN.
  TRIREME_HOST_DEVICE constexpr explicit Float8(float value) : bits_(round(std::bit_cast<std::uint32_t>(value))) {}

  TRIREME_HOST_DEVICE constexpr operator float() const { return std::bit_cast<float>(widen(bits_)); }

  TRIREME_HOST_DEVICE static constexpr Type from_bits(std::uint8_t bits) {
    Type result{};
    result.bits_ = bits;
    return result;
  }
  TRIREME_HOST_DEVICE constexpr std::uint8_t bits() const { return bits_; }

 private:
  static constexpr std::uint32_t float_infinity = 0x7F80'0000;
  static constexpr std::uint32_t fraction_bits = 7 - ExponentBits;
  static constexpr std::uint32_t fraction_shift = 23 - fraction_bits;  // the number of further fraction bits of a float
  static constexpr std::uint32_t bias = (1U << (ExponentBits - 1)) - 1;
  static constexpr std::uint32_t exponent_offset = (127 - bias) << fraction_bits;  // difference of the exponent biases
  static constexpr std::uint32_t largest_bits = is_e4m3 ? 0x7E : 0x7B;
  static constexpr std::uint32_t nan_bits = 0x7F;  // e4m3 has only this NaN; e5m2 has more NaNs, and infinities

  TRIREME_HOST_DEVICE static constexpr std::uint8_t round(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & 0x7FFF'FFFF;
    if (magnitude > float_infinity) return nan_bits;
    const std::uint32_t sign = (bits >> 24) & 0x80;
    return static_cast<std::uint8_t>(sign | round_magnitude(magnitude));
  }

  TRIREME_HOST_DEVICE static constexpr std::uint32_t round_magnitude(std::uint32_t magnitude) {
    constexpr std::uint32_t smallest_normal = (128 - bias) << 23;
    if (magnitude >= std::bit_cast<std::uint32_t>(largest)) return largest_bits;
    if (magnitude >= smallest_normal) return shift_right_to_even(magnitude, fraction_shift) - exponent_offset;
    // A subnormal counts units of 2^(1 - bias - fraction_bits); the float's leading one becomes explicit.
    const std::uint32_t shift = 151 - bias - fraction_bits - (magnitude >> 23);
    if (shift > 24) return 0;
    return shift_right_to_even((magnitude & 0x007F'FFFF) | 0x0080'0000, shift);
  }

  TRIREME_HOST_DEVICE static constexpr std::uint32_t shift_right_to_even(std::uint32_t value, std::uint32_t shift) {
    const std::uint32_t odd = (value >> shift) & 1;
    return (value + ((std::uint32_t{1} << (shift - 1)) - 1) + odd) >> shift;
  }

  TRIREME_HOST_DEVICE static constexpr std::uint32_t widen(std::uint32_t bits) {
    const std::uint32_t sign = (bits & 0x80) << 24;
    const std::uint32_t magnitude = bits & 0x7F;
    if (magnitude > largest_bits) {
      const bool is_infinite = !is_e4m3 && magnitude == largest_bits + 1;
      return sign | float_infinity | (is_infinite ? 0 : 0x0040'0000);
    }
    if (magnitude >> fraction_bits != 0) return sign | ((magnitude + exponent_offset) << fraction_shift);
    constexpr float unit = std::bit_cast<float>((128 - bias - fraction_bits) << 23);
    return sign | std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * unit);
  }

  std::uint8_t bits_;
};

}  // namespace detail

// 4 exponent bits, 3 fraction bits; for values and weights. The largest value is 448; there are no infinities.
class float8_e4m3 : public detail::Float8<float8_e4m3, 4> {
  using Float8::Float8;
};

// 5 exponent bits, 2 fraction bits; for gradients. The largest value is 57344.
class float8_e5m2 : public detail::Float8<float8_e5m2, 5> {
  using Float8::Float8;
};

namespace detail {
template <>
struct DTypeOf<float8_e4m3> {
  static constexpr DType value = DType::float8_e4m3;
};
template <>
struct DTypeOf<float8_e5m2> {
  static constexpr DType value = DType::float8_e5m2;
};
template <>
struct AccumulateOf<float8_e4m3> {
  using type = float;
};
template <>
struct AccumulateOf<float8_e5m2> {
  using type = float;
};
}  // namespace detail

}  // namespace trireme
