#pragma once

#include <cstdint>

#include "trireme/core/host_device.hpp"

// Codes of 8 bits for numbers in [-1, 1] and [0, 1]. Each decade has equal steps, twice as many as the decade below (Dettmers
// 2015, arXiv 1511.04561). The 256 codes in ascending order, as in bitsandbytes:
//
//   signed:   code 127 is 0 and 128 + n, n = 0, 1, 2, ... is 5.5e-7, 3.25e-6, 7.75e-6, ..., 0.993, 1;
//             126 - n is the negative of 128 + n, except that -1 has no code: it becomes -0.993
//   unsigned: 0, 3.25e-7, 7.75e-7, 2.125e-6, ..., 0.996, 1
//
// The formulas are templates for one number or a register of numbers. Their parameter `Lane` has the types Float and Int and
// operations: lookup() takes element i mod 8 of a table, smaller() the smaller number or the second if one is NaN, where() a
// number or else 0, and so on.
namespace trireme::ops {

struct OneNumber {
  using Float = float;
  using Int = int;
  TRIREME_HOST_DEVICE static float all(float x) { return x; }
  TRIREME_HOST_DEVICE static float lookup(const float (&table)[8], int i) {
#ifdef __CUDA_ARCH__  // indexing by a variable would put the table into local memory of each thread
    const float first = (i & 2) != 0 ? ((i & 1) != 0 ? table[3] : table[2]) : ((i & 1) != 0 ? table[1] : table[0]);
    const float second = (i & 2) != 0 ? ((i & 1) != 0 ? table[7] : table[6]) : ((i & 1) != 0 ? table[5] : table[4]);
    return (i & 4) != 0 ? second : first;
#else
    return table[i & 7];
#endif
  }
  TRIREME_HOST_DEVICE static float smaller(float a, float b) { return a < b ? a : b; }
  TRIREME_HOST_DEVICE static float larger(float a, float b) { return a > b ? a : b; }
  TRIREME_HOST_DEVICE static float where(bool condition, float a) { return condition ? a : 0.0F; }
  TRIREME_HOST_DEVICE static int one_where(bool condition) { return condition ? 1 : 0; }
  TRIREME_HOST_DEVICE static float to_float(int i) { return static_cast<float>(i); }
  TRIREME_HOST_DEVICE static int to_int(float x) { return static_cast<int>(x); }  // towards 0
  TRIREME_HOST_DEVICE static int bits(float x) { return __builtin_bit_cast(int, x); }
  TRIREME_HOST_DEVICE static float from_bits(int i) { return __builtin_bit_cast(float, i); }
};

inline constexpr int sign_bit = static_cast<int>(0x80000000U);
inline constexpr int half_bits = 0x3F000000;  // of 0.5

// The positive codes, n in [1, last]. Decade i = 0 to 6 is [10^(i-7), 10^(i-6)] and is cut into `cells` * 2^i cells. Their
// codes begin at n = cells * (2^i - 1) + 1, and the value of a code is the middle of its cell. The code of i = 7 is 1.
template <int cells>
struct Decades {
  static constexpr int last = cells * 127 + 1;

  // The value of code n for number = n + cells - 1/2, as (number - cells * 2^i) / (cells * 2^i) is the position of its cell's
  // middle in the decade. Negative numbers have negative values. For n = 0 and n = last it is 0.
  template <typename Lane>
  TRIREME_HOST_DEVICE static typename Lane::Float value(typename Lane::Float number) {
    // 5^i / 10^7, or with two cells 5^(i+1) / 10^8, indexed by the exponent of the number.
    constexpr float scales[2][8] = {{5e-7F, 25e-7F, 125e-7F, 625e-7F, 3125e-7F, 15625e-7F, 0, 1e-7F},
                                    {5e-8F, 25e-8F, 125e-8F, 625e-8F, 3125e-8F, 15625e-8F, 78125e-8F, 0}};
    const auto bits = Lane::bits(number);
    const auto power = Lane::from_bits(bits & ~0x7FFFFF);  // cells * 2^i
    return (9.0F * number - 8.0F * power) * Lane::lookup(scales[cells - 1], bits >> 23);
  }

  // The n of the code nearest to a is the integer part of this number, minus `cells` - 1. Below the lowest code the number goes
  // down to cells * 8/9.
  template <typename Lane>
  TRIREME_HOST_DEVICE static typename Lane::Float nearest(typename Lane::Float a) {
    constexpr Table table;
    // An estimate of the logarithm that is 0.3 too low, within 0.03: a is in this decade or the next one.
    constexpr auto decades_of_bits = static_cast<float>(0.30102999566 / (1 << 23));
    const auto logarithm = Lane::to_float(Lane::bits(a)) * decades_of_bits + static_cast<float>(6.7 - 127 * 0.30102999566);
    const auto least = Lane::to_int(Lane::smaller(Lane::larger(logarithm, Lane::all(0)), Lane::all(6)));
    const auto decade = least + Lane::one_where(a > Lane::lookup(table.edge, least));
    const auto number = a * Lane::lookup(table.slope, decade) + Lane::lookup(table.offset, decade);
    return Lane::smaller(number, Lane::lookup(table.most, decade));
  }

 private:
  // For each decade: `edge`, its end, between its last code and the first code of the next one; `slope` and `offset` for number
  // = slope * a + offset; `most`, the number of its last cell.
  struct Table {
    float edge[8] = {};
    float slope[8] = {};
    float offset[8] = {};
    float most[8] = {};

    constexpr Table() {
      double power = cells;
      double end = 1e-6;
      for (int i = 0; i < 7; ++i, power *= 2, end *= 10) {
        edge[i] = static_cast<float>(i < 6 ? end * (1 + 0.9 / power) : 1 - 0.225 / power);
        slope[i] = static_cast<float>(power / end / 0.9);
        offset[i] = static_cast<float>(power * 8 / 9);
        most[i] = static_cast<float>(2 * power - 0.5);
      }
      most[7] = offset[7] = static_cast<float>(power) + 0.5F;
    }
  };
};

// For first moments.
struct SignedCodes {
  template <typename Lane>
  TRIREME_HOST_DEVICE static typename Lane::Float value(typename Lane::Int code) {
    const auto n = Lane::to_float(code) - 127.0F;
    const auto half = Lane::from_bits((Lane::bits(n) & sign_bit) | half_bits);
    return Decades<1>::value<Lane>(n + half) + Lane::where(n > 127.5F, Lane::all(1));
  }
  template <typename Lane>
  TRIREME_HOST_DEVICE static typename Lane::Int code(typename Lane::Float x) {
    const auto magnitude = Lane::from_bits(Lane::bits(x) & ~sign_bit);
    const auto n = Lane::where(magnitude > 2.75e-7F, Decades<1>::nearest<Lane>(magnitude));  // else 0 is nearer
    const auto with_sign = Lane::from_bits(Lane::bits(n) | (Lane::bits(x) & sign_bit));
    return Lane::to_int(Lane::larger(with_sign, Lane::all(-127.5F))) + 127;
  }
};

// For second moments. Numbers above 0 never get the code of 0, because a step would be divided by it (Li, Chen, Zhu 2023, arXiv
// 2309.01507, on the "zero-point problem"); in bitsandbytes they may.
struct UnsignedCodes {
  template <typename Lane>
  TRIREME_HOST_DEVICE static typename Lane::Float value(typename Lane::Int code) {
    const auto n = Lane::to_float(code);
    return Decades<2>::value<Lane>(n + 1.5F) + Lane::where(n > 254.5F, Lane::all(1));
  }
  template <typename Lane>
  TRIREME_HOST_DEVICE static typename Lane::Int code(typename Lane::Float x) {
    const auto n = Lane::larger(Decades<2>::nearest<Lane>(x) - 1.0F, Lane::all(1));
    return Lane::to_int(Lane::where(x > 0.0F, n));
  }
};

}  // namespace trireme::ops
