#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme::parallel {

// A sum of doubles that are 0 or more without rounding, so that it does not depend on their order or on who adds what: a whole
// number of 66 digits of 32 bits, the first worth 2^-1074 (the "long accumulator" of Kulisch, 2013, Computer Arithmetic and
// Validity). What is inf or nan makes the sum so.
class ExactSum {
 public:
  static constexpr std::size_t num_digits = 66;

  void add(double value);  // 0 or more, inf or nan

  // As doubles that can be added up, one by one, with those of at most 2^20 other sums: the digits, and behind them what is
  // inf or nan.
  static constexpr std::size_t num_doubles = num_digits + 1;
  void write(std::span<double, num_doubles> to);
  void read(std::span<const double, num_doubles> from);

  double value();  // rounded

 private:
  void carry();

  std::array<std::uint64_t, num_digits> digits_{};  // below 2^32 after carry()
  std::uint64_t added_ = 0;                         // since carry()
  double special_ = 0;
};

}  // namespace trireme::parallel
