#pragma once

#include <cstdint>

#include "trireme/core/host_device.hpp"

// Numbers of [-1, 1] and of [0, 1] in 8 bits: a decade, and in it equal steps, twice as many as in the decade below
// (Dettmers 2015, arXiv 1511.04561). Of the 256 codes in ascending order, as bitsandbytes has them:
//
//   signed:   code 127 is 0 and 128 + n, n = 0, 1, 2, ... is 5.5e-7, 3.25e-6, 7.75e-6, ..., 0.993, 1;
//             126 - n is the negative of 128 + n, but for 1, which has none: -1 becomes -0.993
//   unsigned: 0, 3.25e-7, 7.75e-7, 2.125e-6, ..., 0.996, 1
//
// A value is an integer times a power of ten, so every instruction set gets the same bits of it.
namespace trireme::ops {

// The number before the sign: n of the codes above 0, in [1, last]. Decade i, of [10^(i-7), 10^(i-6)], i = 0 to 6, has `cells`
// * 2^i of them, each in the middle of its cell.
template <int cells>
struct Decades {
  static constexpr int last = cells * 127 + 1;  // is 1; the decades have those before

  TRIREME_HOST_DEVICE static float value(int n) {
    const float f = static_cast<float>(n + cells - 1) + 0.5F;
    const auto bits = __builtin_bit_cast(std::uint32_t, f);
    const auto power = __builtin_bit_cast(float, bits & 0x7F800000U);  // cells * 2^decade
    const std::uint32_t e = (bits >> 23) + 1;                          // its last three bits: of the exponent
    // f / power lies in [1, 2), and 5^e / 10^e divides by the power.
    const float fives = ((e & 1) != 0 ? 5.0F : 1.0F) * ((e & 2) != 0 ? 25.0F : 1.0F) * ((e & 4) != 0 ? 625.0F : 1.0F);
    const float inside = (9.0F * f - 8.0F * power) * fives * (cells == 1 ? 1e-7F : 1e-8F);
    return n <= 0 ? 0.0F : n >= last ? 1.0F : inside;
  }

  // The nearest to a, which is above 0: float, so that a loop needs one width of vectors, and with a fraction; at least 1.
  TRIREME_HOST_DEVICE static float nearest(float a) {
    float t = a;  // into (0.1, 1]
    float power = cells * 64;
    const auto raise = [&](float most, float tens, float halves) TRIREME_INLINED {
      const bool raised = t <= most;
      power = raised ? power * halves : power;
      t = raised ? t * tens : t;
    };
    raise(1e-4F, 1e4F, 0.0625F);
    raise(1e-2F, 1e2F, 0.25F);
    raise(1e-1F, 1e1F, 0.5F);
    // The cells of this decade are [power, 2 power). The first fifth of the first is nearer to the last of the decade below.
    const float cell = power * (t * static_cast<float>(1 / 0.9) + static_cast<float>(8 / 9.0));
    const float inside = cell < 2 * power - 0.5F ? cell : 2 * power - 0.5F;
    const float n = (inside < power + 0.2F ? power - 0.5F : inside) - (cells - 1);
    constexpr auto top = static_cast<float>(1 - 0.225 / (cells * 64));  // between 1 and the value before
    const float least = n > 1 ? n : 1.0F;
    return a > top ? static_cast<float>(last) : least;
  }
};

// First moments.
TRIREME_HOST_DEVICE float signed_value(int code) {
  const int n = code - 127;
  const float value = Decades<1>::value(n < 0 ? -n : n);
  return n < 0 ? -value : value;
}
TRIREME_HOST_DEVICE int signed_code(float x) {
  const float a = x < 0 ? -x : x;
  const float n = a > 2.75e-7F ? Decades<1>::nearest(a) : 0.0F;  // 0 is nearer; nan
  const float with_sign = x < 0 ? -n : n;
  return 127 + static_cast<int>(with_sign > -127.5F ? with_sign : -127.5F);
}

// Second moments. What is above 0 does not become 0, which a step would be divided by (Li, Chen, Zhu 2023, arXiv 2309.01507, on
// the "zero-point problem"); bitsandbytes does not see to that.
TRIREME_HOST_DEVICE float unsigned_value(int code) { return Decades<2>::value(code); }
TRIREME_HOST_DEVICE int unsigned_code(float x) {
  const float n = Decades<2>::nearest(x);
  return static_cast<int>(x > 0 ? n : 0.0F);
}

}  // namespace trireme::ops
