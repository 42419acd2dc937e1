#pragma once

#include <bit>
#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/core/host_device.hpp"

namespace trireme TRIREME_EXPORT {

// The upper half of a float: 8 exponent bits, 7 fraction bits. Arithmetic converts to float.
class bfloat16 {
 public:
  bfloat16() = default;

  // Rounds to nearest, ties to even; values beyond the largest finite number become infinity; NaN stays NaN.
  TRIREME_HOST_DEVICE constexpr explicit bfloat16(float value) : bits_(round(std::bit_cast<std::uint32_t>(value))) {}

  TRIREME_HOST_DEVICE constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16); }

  TRIREME_HOST_DEVICE static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 result{};
    result.bits_ = bits;
    return result;
  }
  TRIREME_HOST_DEVICE constexpr std::uint16_t bits() const { return bits_; }

 private:
  TRIREME_HOST_DEVICE static constexpr std::uint16_t round(std::uint32_t bits) {
    constexpr std::uint32_t infinity = 0x7F80'0000;
    constexpr std::uint32_t quiet = 0x0040'0000;
    if ((bits & 0x7FFF'FFFF) > infinity) return static_cast<std::uint16_t>((bits | quiet) >> 16);
    const std::uint32_t odd = (bits >> 16) & 1;
    return static_cast<std::uint16_t>((bits + 0x7FFF + odd) >> 16);
  }

  std::uint16_t bits_;
};

}  // namespace trireme
