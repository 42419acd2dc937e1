#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "trireme/core/units.hpp"
#include "trireme/trainer/options.hpp"

namespace trireme::trainer {

// A value that is written and read as text.
struct Words {
  std::function<std::string()> shown;
  std::function<void(const std::string&)> take;
  std::vector<std::string> choices = {};  // none: any words
};

// The location of an option's value.
using OptionValue =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::optional<double>*, std::string*, Amount*, Words>;

std::string text_of_value(const OptionValue& value);  // an optional without a number: "not given"

// One option. The command line, files for --config, the help, the settings in checkpoints and their comparison follow from its
// row.
template <typename Target>
struct OptionRow {
  const char* name = nullptr;              // on the command line and in files; null: only a setting in checkpoints
  OptionValue (*value)(Target&);           // the member
  const char* text = "";                   // in the help
  const char* setting = nullptr;           // its name in checkpoints; null: they do not keep it
  Differs differs = Differs::refused;      // what happens if a resumed run has another value
  void (*check)(const Target&) = nullptr;  // throws Error{invalid_argument} that names the allowed values
  const char* unset = "not given";         // the text in checkpoints for an optional without a number
  const char* instead_of = nullptr;        // the option that this one sets in another unit
  bool yields = false;                     // left out if the program has an option of this name
};

// A value and its name.
template <typename T>
struct NamedValue {
  const char* name;
  T value;
};

template <typename T>
Words choice_of(T& value, std::span<const NamedValue<T>> all) {
  Words words{.shown =
                  [&value, all] {
                    for (const auto& [name, one] : all) {
                      if (one == value) return std::string(name);
                    }
                    return std::string();
                  },
              .take =
                  [&value, all](const std::string& given) {
                    for (const auto& [name, one] : all) {
                      if (given == name) value = one;
                    }
                  }};
  for (const auto& [name, one] : all) words.choices.emplace_back(name);
  return words;
}

}  // namespace trireme::trainer
