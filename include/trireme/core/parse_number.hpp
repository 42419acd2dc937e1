#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Parses the whole text as a decimal number, independently of the locale. Returns std::nullopt for other text, for a number out
// of the range of T, and for inf and nan.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || stop != end) return std::nullopt;
  if constexpr (std::floating_point<T>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

}  // namespace trireme
