#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme::data {

// A number with every digit of its text: 0.digits times ten to the power of point. No zeros at either end of the digits.
struct DecimalNumber {
  bool negative = false;
  std::int64_t point = 0;
  std::string digits = {};  // none: zero

  bool is_whole() const { return point >= static_cast<std::int64_t>(digits.size()); }
  bool operator==(const DecimalNumber&) const = default;
  std::strong_ordering operator<=>(const DecimalNumber& other) const;
};

// What a value of a CSV file says; `decimal` stands before its fraction. None for a text, and here for inf and nan too.
std::optional<DecimalNumber> decimal_in(std::string_view text, char decimal = '.');

// The same as the nearest double; inf and nan are numbers.
std::optional<double> number_in(std::string_view text, char decimal = '.');

}  // namespace trireme::data
