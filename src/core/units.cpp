#include "trireme/core/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "trireme/core/error.hpp"

namespace trireme {

namespace {

template <typename T>
struct Words;
template <>
struct Words<Steps> {
  static constexpr std::array<std::string_view, 3> all{"steps", "step", ""};
};
template <>
struct Words<Samples> {
  static constexpr std::array<std::string_view, 2> all{"samples", "sample"};
};
template <>
struct Words<Tokens> {
  static constexpr std::array<std::string_view, 2> all{"tokens", "token"};
};
template <>
struct Words<Epochs> {
  static constexpr std::array<std::string_view, 2> all{"epochs", "epoch"};
};

struct TimeUnit {
  std::string_view word;
  double seconds;
};
constexpr std::array<TimeUnit, 4> time_units{{{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}}};

[[noreturn]] void refuse(std::string_view text) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("\"{}\" is not an amount above 0", text),
               .hint = "write 600 steps, 5000 samples, 1000000 tokens, 20 epochs, 30s, 10min or 2h; a number alone is steps"});
}

template <typename T>
bool is_one_of(std::string_view word) {
  for (const std::string_view known : Words<T>::all) {
    if (word == known) return true;
  }
  return false;
}

// Steps, samples and tokens are whole numbers.
template <typename T>
T whole(double number, std::string_view text) {
  if (number != std::floor(number) || number > 9e15) refuse(text);
  return {static_cast<std::int64_t>(number)};
}

}  // namespace

std::string to_text(const Amount& amount) {
  return std::visit(
      []<typename T>(const T& value) {
        if constexpr (std::is_same_v<T, Seconds>) {
          return fmt::format("{} s", value.count);
        } else {
          return fmt::format("{} {}", value.count, Words<T>::all[value.count == 1 ? 1 : 0]);
        }
      },
      amount);
}

Amount parse_amount(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || !std::isfinite(number) || number <= 0) refuse(text);
  std::string_view word(stop, static_cast<std::size_t>(end - stop));
  while (word.starts_with(' ')) word.remove_prefix(1);
  if (is_one_of<Steps>(word)) return whole<Steps>(number, text);
  if (is_one_of<Samples>(word)) return whole<Samples>(number, text);
  if (is_one_of<Tokens>(word)) return whole<Tokens>(number, text);
  if (is_one_of<Epochs>(word)) return Epochs{number};
  for (const TimeUnit& unit : time_units) {
    if (word == unit.word && std::isfinite(number * unit.seconds)) return Seconds{number * unit.seconds};
  }
  refuse(text);
}

}  // namespace trireme
