#include "trainer/option_rows.hpp"

#include <fmt/format.h>

#include <concepts>
#include <type_traits>

namespace trireme::trainer {

std::string text_of_value(const OptionValue& value) {
  return std::visit(
      [](const auto& at) -> std::string {
        using At = std::remove_cvref_t<decltype(at)>;
        if constexpr (std::same_as<At, Words>) {
          return at.shown();
        } else if constexpr (std::same_as<At, bool*>) {
          return *at ? "on" : "off";
        } else if constexpr (std::same_as<At, Amount*>) {
          return to_text(*at);
        } else if constexpr (std::same_as<At, std::optional<double>*>) {
          return *at ? fmt::format("{}", **at) : "not given";
        } else {
          return fmt::format("{}", *at);
        }
      },
      value);
}

}  // namespace trireme::trainer
