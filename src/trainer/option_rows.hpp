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

// A value that is said in words.
struct Words {
  std::function<std::string()> shown;
  std::function<void(const std::string&)> take;
  std::vector<std::string> choices = {};  // none: any words
};

// Where the value of an option lies.
using OptionValue =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::optional<double>*, std::string*, Amount*, Words>;

std::string text_of_value(const OptionValue& value);  // an optional without a number: "not given"

// One option. The command line, files of options, the settings in checkpoints, what happens where these differ and the help
// are made of its row.
template <typename Target>
struct OptionRow {
  const char* name = nullptr;              // on the command line and in files; null: it is a setting alone
  OptionValue (*value)(Target&);           // the member
  const char* text = "";                   // in the help
  const char* setting = nullptr;           // its name in checkpoints; null: they do not keep it
  Differs differs = Differs::refused;      // where a run goes on with another one
  void (*check)(const Target&) = nullptr;  // Error{invalid_argument} says which values there are
  const char* unset = "not given";         // in checkpoints, of an optional without a number
  const char* instead_of = nullptr;        // the option that this one says in another way
  bool yields = false;                     // where the program has an option of this name
};

// One of several values that have names.
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
