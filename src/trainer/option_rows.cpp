#include "trainer/option_rows.hpp"

#include <concepts>
#include <type_traits>

#include "trireme/core/setting.hpp"

namespace trireme::trainer {

std::string text_of_value(const OptionValue& value) {
  return std::visit(
      [](const auto& at) -> std::string {
        using At = std::remove_cvref_t<decltype(at)>;
        if constexpr (std::same_as<At, Words>) {
          return at.shown();
        } else if constexpr (std::same_as<At, Amount*>) {
          return to_text(*at);
        } else if constexpr (std::same_as<At, std::optional<double>*>) {
          return *at ? Setting::text_of(**at) : "not given";
        } else {
          return Setting::text_of(*at);
        }
      },
      value);
}

}  // namespace trireme::trainer
