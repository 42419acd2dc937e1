#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// A setting with its value as text, to compare ranks and checkpoints. A number becomes the shortest text that parses to the
// same number, a bool becomes "on" or "off", text stays as it is.
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
