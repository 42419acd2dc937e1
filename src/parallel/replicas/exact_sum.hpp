#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme::parallel {

// Adds doubles of 0 or more without rounding, so that the sum does not depend on their order or on the ranks that add them. The
// sum is an integer of 66 digits of 32 bits, in units of 2^-1074 (the "long accumulator" of Kulisch, 2013, Computer Arithmetic
// and Validity). An inf or nan makes the sum inf or nan.
class ExactSum {
 public:
  static constexpr std::size_t num_digits = 66;

  void add(double value);  // 0 or more, inf or nan

  // The sum as doubles that may be added, element by element, to those of up to 2^20 other sums: the digits, then the sum of
  // inf and nan.
  static constexpr std::size_t num_doubles = num_digits + 1;
  void write(std::span<double, num_doubles> to);
  void read(std::span<const double, num_doubles> from);

  double value();  // rounded

 private:
  void carry();

  std::array<std::uint64_t, num_digits> digits_{};  // each below 2^32 after carry()
  std::uint64_t added_ = 0;                         // additions since the last carry()
  double special_ = 0;
};

}  // namespace trireme::parallel
