#pragma once

#include <bit>
#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/core/host_device.hpp"

namespace trireme TRIREME_EXPORT {

// IEEE half precision: 5 exponent bits, 10 fraction bits. Arithmetic converts to float.
class float16 {
 public:
  float16() = default;

  // Rounds to nearest, ties to even; values beyond 65504, the largest finite number, become infinity; NaN stays NaN.
  TRIREME_HOST_DEVICE constexpr explicit float16(float value) : bits_(round(std::bit_cast<std::uint32_t>(value))) {}

  TRIREME_HOST_DEVICE constexpr operator float() const { return std::bit_cast<float>(widen(bits_)); }

  TRIREME_HOST_DEVICE static constexpr float16 from_bits(std::uint16_t bits) {
    float16 result{};
    result.bits_ = bits;
    return result;
  }
  TRIREME_HOST_DEVICE constexpr std::uint16_t bits() const { return bits_; }

 private:
  static constexpr std::uint32_t float_infinity = 0x7F80'0000;
  static constexpr std::uint32_t half_infinity = 0x7C00;
  static constexpr std::uint32_t quiet = 0x0200;
  static constexpr std::uint32_t fraction_shift = 13;                 // a float has 13 more fraction bits
  static constexpr std::uint32_t exponent_offset = (127 - 15) << 10;  // difference of the exponent biases, as bits of a half

  TRIREME_HOST_DEVICE static constexpr std::uint16_t round(std::uint32_t bits) {
    const std::uint32_t sign = (bits >> 16) & 0x8000;
    const std::uint32_t magnitude = bits & 0x7FFF'FFFF;
    return static_cast<std::uint16_t>(sign | round_magnitude(magnitude));
  }

  TRIREME_HOST_DEVICE static constexpr std::uint32_t round_magnitude(std::uint32_t magnitude) {
    constexpr std::uint32_t first_infinite = 0x477F'F000;   // 65520, halfway between 65504 and 2^16
    constexpr std::uint32_t smallest_normal = 0x3880'0000;  // 2^-14
    if (magnitude > float_infinity) return half_infinity | quiet | ((magnitude >> fraction_shift) & 0x3FF);
    if (magnitude >= first_infinite) return half_infinity;
    if (magnitude >= smallest_normal) return shift_right_to_even(magnitude, fraction_shift) - exponent_offset;
    // A subnormal counts units of 2^-24, so the float's implicit leading one becomes explicit.
    const std::uint32_t exponent = magnitude >> 23;
    const std::uint32_t shift = 126 - exponent;
    if (shift > 24) return 0;
    return shift_right_to_even((magnitude & 0x007F'FFFF) | 0x0080'0000, shift);
  }

  TRIREME_HOST_DEVICE static constexpr std::uint32_t shift_right_to_even(std::uint32_t value, std::uint32_t shift) {
    const std::uint32_t odd = (value >> shift) & 1;
    return (value + ((std::uint32_t{1} << (shift - 1)) - 1) + odd) >> shift;
  }

  TRIREME_HOST_DEVICE static constexpr std::uint32_t widen(std::uint32_t bits) {
    const std::uint32_t sign = (bits & 0x8000) << 16;
    const std::uint32_t magnitude = bits & 0x7FFF;
    if (magnitude >= half_infinity) return sign | float_infinity | ((magnitude & 0x3FF) << fraction_shift);
    if (magnitude >= 0x0400) return sign | ((magnitude + exponent_offset) << fraction_shift);
    // Subnormals are multiples of 2^-24, exact in float.
    constexpr float unit = 5.9604644775390625e-8F;
    return sign | std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * unit);
  }

  std::uint16_t bits_;
};

}  // namespace trireme
