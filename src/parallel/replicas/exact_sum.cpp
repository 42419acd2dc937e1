#include "parallel/replicas/exact_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace trireme::parallel {
namespace {

constexpr int digit_bits = 32;
constexpr std::uint64_t low_digit = (std::uint64_t{1} << digit_bits) - 1;
constexpr int smallest = -1074;                               // a double is a multiple of 2^smallest
constexpr std::uint64_t most_added = std::uint64_t{1} << 31;  // without an overflow

}  // namespace

void ExactSum::add(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t exponent = bits >> 52;  // the sign is 0
  if (exponent >= 0x7FF) {
    special_ += value;
    return;
  }
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | std::uint64_t{1} << 52;
  const std::uint64_t place = exponent == 0 ? 0 : exponent - 1;  // of the mantissa's last bit, above 2^smallest
  const std::size_t digit = place / digit_bits;
  const std::uint64_t shift = place % digit_bits;
  const std::uint64_t low = (mantissa & low_digit) << shift;
  const std::uint64_t high = (mantissa >> digit_bits) << shift;  // 21 bits and the shift
  const std::uint64_t middle = (low >> digit_bits) + (high & low_digit);
  digits_[digit] += low & low_digit;
  digits_[digit + 1] += middle & low_digit;
  const std::uint64_t top = (high >> digit_bits) + (middle >> digit_bits);
  if (top != 0) digits_[digit + 2] += top;
  if (++added_ == most_added) carry();
}

void ExactSum::carry() {
  for (std::size_t digit = 0; digit + 1 < num_digits; ++digit) {
    digits_[digit + 1] += digits_[digit] >> digit_bits;
    digits_[digit] &= low_digit;
  }
  added_ = 0;
}

void ExactSum::write(std::span<double, num_doubles> to) {
  carry();
  std::ranges::transform(digits_, to.begin(), [](std::uint64_t digit) { return static_cast<double>(digit); });
  to.back() = special_;
}

void ExactSum::read(std::span<const double, num_doubles> from) {
  std::ranges::transform(from.first(num_digits), digits_.begin(),
                         [](double digit) { return static_cast<std::uint64_t>(digit); });
  special_ = from.back();
  carry();
}

double ExactSum::value() {
  if (special_ != 0) return special_;  // inf or nan
  carry();
  double sum = 0;
  for (std::size_t digit = 0; digit < num_digits; ++digit) {
    sum += std::ldexp(static_cast<double>(digits_[digit]), smallest + digit_bits * static_cast<int>(digit));
  }
  return sum;
}

}  // namespace trireme::parallel
