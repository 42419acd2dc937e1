#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme::data {

// An exact decimal number: 0.digits * 10^point, without leading and trailing zeros in digits.
struct DecimalNumber {
  bool negative = false;
  std::int64_t point = 0;
  std::string digits = {};  // empty: zero

  bool is_whole() const { return point >= static_cast<std::int64_t>(digits.size()); }
  bool operator==(const DecimalNumber&) const = default;
  std::strong_ordering operator<=>(const DecimalNumber& other) const;
};

// Parses a value of a CSV file; `decimal` is its decimal mark. Returns std::nullopt for text, inf and nan.
std::optional<DecimalNumber> decimal_in(std::string_view text, char decimal = '.');

// Parses a value as the nearest double, also inf and nan. Returns std::nullopt for text.
std::optional<double> number_in(std::string_view text, char decimal = '.');

}  // namespace trireme::data
