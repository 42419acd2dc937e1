#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trireme/core/parse_number.hpp"

namespace trireme {

// Reads the number given for an option; throws a CLI::ConversionError that says what the option takes.
template <typename T>
T number_for(const std::string& option, const std::string& given) {
  if (const auto number = parse_number<T>(given)) return *number;
  const std::string takes = std::floating_point<T> ? std::string("one number, such as 0.001")
                                                   : fmt::format("one whole number from {} to {}",
                                                                 std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  throw CLI::ConversionError(fmt::format("{} takes {}, not \"{}\"", option, takes, given), CLI::ExitCodes::ConversionError);
}

// Adds an option that takes a decimal number. CLI11 itself would read 010 as 8, and floating-point numbers by the locale.
template <typename T>
CLI::Option* add_number(CLI::App& app, const std::string& name, T& value, const std::string& text) {
  return app
      .add_option_function<std::string>(
          name, [&value, name](const std::string& given) { value = number_for<T>(name, given); }, text)
      ->type_name(CLI::detail::type_name<T>())
      ->default_str(fmt::format("{}", value));
}

// The same without a default.
template <typename T>
CLI::Option* add_number(CLI::App& app, const std::string& name, std::optional<T>& value, const std::string& text) {
  return app
      .add_option_function<std::string>(
          name, [&value, name](const std::string& given) { value = number_for<T>(name, given); }, text)
      ->type_name(CLI::detail::type_name<T>());
}

// The same for several numbers with commas between them.
template <typename T>
CLI::Option* add_numbers(CLI::App& app, const std::string& name, std::vector<T>& values, const std::string& text) {
  return app
      .add_option_function<std::vector<std::string>>(
          name,
          [&values, name](const std::vector<std::string>& given) {
            values.clear();
            for (const std::string& one : given) values.push_back(number_for<T>(name, one));
          },
          text)
      ->delimiter(',')
      ->type_name(CLI::detail::type_name<T>())
      ->default_str(fmt::format("{}", fmt::join(values, ",")));
}

}  // namespace trireme
