#include "data/tables/number.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>

namespace trireme::data {
namespace {

constexpr std::int64_t largest_exponent = 1'000'000'000'000'000;  // small enough that sums of exponents do not overflow

bool is_digit(char character) { return character >= '0' && character <= '9'; }

// Parses the exponent: what follows the e in "1e-5".
std::optional<std::int64_t> exponent_in(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc() || end != text.data() + text.size() || std::abs(exponent) > largest_exponent) return std::nullopt;
  return exponent;
}

}  // namespace

std::strong_ordering DecimalNumber::operator<=>(const DecimalNumber& other) const {
  const auto sign_of = [](const DecimalNumber& number) { return number.digits.empty() ? 0 : number.negative ? -1 : 1; };
  if (const auto order = sign_of(*this) <=> sign_of(other); order != 0 || digits.empty()) return order;
  auto order = point <=> other.point;
  if (order == 0) order = digits <=> other.digits;
  return negative ? 0 <=> order : order;
}

std::optional<DecimalNumber> decimal_in(std::string_view text, char decimal) {
  DecimalNumber number;
  std::size_t at = 0;
  if (text.starts_with('+') || text.starts_with('-')) number.negative = text[at++] == '-';
  const std::size_t first = at;
  bool in_fraction = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == decimal && !in_fraction)); ++at) {
    if (text[at] == decimal) {
      in_fraction = true;
      continue;
    }
    const bool leads = text[at] == '0' && number.digits.empty();
    if (!leads) number.digits += text[at];
    if (leads && in_fraction) --number.point;
    if (!leads && !in_fraction) ++number.point;
  }
  if (at - first == (in_fraction ? 1u : 0u)) return std::nullopt;  // no digit
  if (at < text.size()) {
    if (text[at] != 'e' && text[at] != 'E') return std::nullopt;
    const auto exponent = exponent_in(text.substr(at + 1));
    if (!exponent) return std::nullopt;
    number.point += *exponent;
  }
  number.digits.erase(number.digits.find_last_not_of('0') + 1);
  return number.digits.empty() ? DecimalNumber() : number;
}

std::optional<double> number_in(std::string_view text, char decimal) {
  if (decimal != '.') {
    if (text.find('.') != text.npos) return std::nullopt;
    std::string pointed(text);
    std::ranges::replace(pointed, decimal, '.');
    return number_in(pointed);
  }
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error != std::errc::result_out_of_range) return number;
  const auto exact = decimal_in(text);
  if (!exact) return std::nullopt;
  return exact->digits.empty() || exact->point < 0 ? 0 : exact->negative ? -HUGE_VAL : HUGE_VAL;
}

}  // namespace trireme::data
