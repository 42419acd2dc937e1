#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "catch.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/core/float8.hpp"

using trireme::bfloat16;
using trireme::float16;
using trireme::float8_e4m3;
using trireme::float8_e5m2;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// The value of a pattern with so many bits of exponent and fraction, by the definition of IEEE 754.
float decode(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const float sign = (bits >> (exponent_bits + fraction_bits)) != 0 ? -1.0F : 1.0F;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? nan : sign * infinity;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - bias - fraction_bits);
  return sign * std::ldexp(static_cast<float>(fraction + (1 << fraction_bits)), exponent - bias - fraction_bits);
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

// Every pattern keeps its value on the way to float and its bits on the way back; halfway to the next one goes to even.
template <typename T>
void check_all_patterns(int exponent_bits, int fraction_bits) {
  int num_wrong = 0;
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float value = T::from_bits(bits);
    num_wrong += !same(value, decode(pattern, exponent_bits, fraction_bits));
    if (std::isnan(value)) {
      num_wrong += !std::isnan(static_cast<float>(T(value)));
      continue;
    }
    num_wrong += T(value).bits() != bits;
    const auto next_bits = static_cast<std::uint16_t>(bits + 1);
    const float next = T::from_bits(next_bits);
    if (std::isinf(value) || std::isnan(next)) continue;
    // Beyond the largest number, values round as if there were one more exponent.
    const double above =
        std::isinf(next) ? 2.0 * value - static_cast<float>(T::from_bits(static_cast<std::uint16_t>(bits - 1))) : next;
    const double halfway = (static_cast<double>(value) + above) / 2;
    const auto tie = static_cast<float>(halfway);
    if (tie != halfway) continue;  // between the smallest bfloat16s: float has no such value
    num_wrong += T(tie).bits() != (bits % 2 == 0 ? bits : next_bits);
    num_wrong += T(std::nextafter(tie, value)).bits() != bits;
    num_wrong += T(std::nextafter(tie, static_cast<float>(above))).bits() != next_bits;
  }
  CHECK(num_wrong == 0);
}

// The same for 8 bits, by the tables of the OCP 8-bit floating point specification. There is nothing beyond the largest: e4m3
// has no infinity and one pattern of NaN for each sign, of e5m2 infinity is never the result of rounding.
template <typename T>
void check_all_float8(int exponent_bits, int fraction_bits, int num_nans) {
  int num_wrong = 0;
  int nans = 0;
  for (std::uint32_t pattern = 0; pattern < 0x100; ++pattern) {
    const auto bits = static_cast<std::uint8_t>(pattern);
    const float value = T::from_bits(bits);
    const bool top_is_finite = exponent_bits == 4 && (bits & 0x7F) < 0x7F;
    const bool top = (bits & 0x78) == 0x78 && top_is_finite;  // what IEEE 754 would take for infinity and NaN
    const float by_table = top ? (bits < 0x80 ? 1.0F : -1.0F) * static_cast<float>(256 + 32 * (bits & 7))
                               : decode(pattern, exponent_bits, fraction_bits);
    num_wrong += !same(value, by_table);
    nans += std::isnan(value);
    if (!std::isfinite(value)) {
      num_wrong += T(value).bits() != (std::isnan(value) ? 0x7F : T(std::copysign(T::largest, value)).bits());
      continue;
    }
    num_wrong += T(value).bits() != bits;
    if (std::abs(value) == T::largest) {
      num_wrong += T(value * 1.0625F).bits() != bits || T(value * 1e9F).bits() != bits;
      continue;
    }
    const auto next_bits = static_cast<std::uint8_t>(bits + 1);
    const float next = T::from_bits(next_bits);
    const float tie = (value + next) / 2;
    num_wrong += T(tie).bits() != (bits % 2 == 0 ? bits : next_bits);
    num_wrong += T(std::nextafter(tie, value)).bits() != bits;
    num_wrong += T(std::nextafter(tie, next)).bits() != next_bits;
  }
  CHECK(num_wrong == 0);
  CHECK(nans == num_nans);
}

static_assert(bfloat16(1.0F).bits() == 0x3F80);
static_assert(float16(1.0F).bits() == 0x3C00);
static_assert(static_cast<float>(float16::from_bits(0x0001)) == 0x1p-24F);
static_assert(float8_e4m3(1.0F).bits() == 0x38);
static_assert(static_cast<float>(float8_e4m3::from_bits(0x01)) == 0x1p-9F);
static_assert(float8_e5m2(1.0F).bits() == 0x3C);
static_assert(static_cast<float>(float8_e5m2::from_bits(0x01)) == 0x1p-16F);

}  // namespace

TEST_CASE("all patterns of bfloat16") { check_all_patterns<bfloat16>(8, 7); }

TEST_CASE("all patterns of float16") { check_all_patterns<float16>(5, 10); }

TEST_CASE("all patterns of float8_e4m3") { check_all_float8<float8_e4m3>(4, 3, 2); }

TEST_CASE("all patterns of float8_e5m2") { check_all_float8<float8_e5m2>(5, 2, 6); }

TEST_CASE("what is too large becomes infinity, what is too small zero, and the sign stays") {
  CHECK(float16(65519.996F).bits() == 0x7BFF);
  CHECK(float16(65520.0F).bits() == 0x7C00);
  CHECK(float16(-1e30F).bits() == 0xFC00);
  CHECK(bfloat16(std::numeric_limits<float>::max()).bits() == 0x7F80);
  CHECK(bfloat16(-infinity).bits() == 0xFF80);
  CHECK(float16(0x1p-25F).bits() == 0);
  CHECK(float16(-0x1.000002p-25F).bits() == 0x8001);
  CHECK(float16(-std::numeric_limits<float>::denorm_min()).bits() == 0x8000);
  CHECK(float16(-0.0F).bits() == 0x8000);
}

TEST_CASE("nan stays nan whatever its bits") {
  for (const std::uint32_t bits : {0x7F80'0001U, 0xFF80'0001U, 0x7FFF'FFFFU, 0x7FC0'0000U, 0xFFFF'FFFFU}) {
    CHECK(std::isnan(static_cast<float>(bfloat16(std::bit_cast<float>(bits)))));
    CHECK(std::isnan(static_cast<float>(float16(std::bit_cast<float>(bits)))));
  }
}
