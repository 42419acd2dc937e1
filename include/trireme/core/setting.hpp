#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// A setting and its value as text, for a comparison between ranks and for checkpoints: a number as the shortest text that reads
// back to the same number, a flag as on or off, a text as it is.
//
//   std::vector<Setting> settings{{"batch_size", 32}, {"learning_rate", 1e-3}, {"sequence_parallel", false}};
struct Setting {
  std::string name;
  std::string value;

  template <typename T>
  Setting(std::string its_name, const T& its_value) : name(std::move(its_name)), value(text_of(its_value)) {}

  static std::string text_of(std::string_view text) { return std::string(text); }
  static std::string text_of(std::same_as<bool> auto flag) { return flag ? "on" : "off"; }
  template <typename T>
  requires(std::integral<T> || std::floating_point<T>) && (!std::same_as<T, bool>)static std::string text_of(T number) {
    return fmt::format("{}", number);
  }

  friend bool operator==(const Setting&, const Setting&) = default;
};

}  // namespace trireme
