#include "trainer/command_line_text.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <vector>

namespace trireme {
namespace {

// The edit distance: how many letters must be changed, added or removed to turn a into b.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// "; did you mean --steps?" if a name is similar.
std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  std::string nearest;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    const bool begins_so = word.size() > 2 && name.starts_with(word);
    const std::size_t found = begins_so ? 1 : distance(word, name);
    if (found >= least) continue;
    least = found;
    nearest = name;
  }
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

// The command that was chosen, or the program itself.
const CLI::App& chosen(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

}  // namespace

std::string name_of_command(const CLI::App& app) {
  const CLI::App& command = chosen(app);
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : fmt::format("{} {}", parent->get_name(), command.get_name());
}

std::string text_of_unknown(const std::string& option, const CLI::App& app) {
  return fmt::format("{} is no option of {}{}", option, name_of_command(app), suggestion(option, options_of(chosen(app))));
}

std::string text_of(const CLI::ParseError& error, const CLI::App& app) {
  const CLI::App& command = chosen(app);
  for (const std::string& word : app.remaining(true)) {
    if (word == "--") continue;  // CLI11 has taken what follows it
    if (word.size() > 1 && word.starts_with('-')) {
      return text_of_unknown(word.substr(0, word.find('=')), app);
    }
    const auto commands = commands_of(app);
    if (&command == &app && !commands.empty()) {
      return fmt::format("{} is no command of {}{}", word, app.get_name(), suggestion(word, commands));
    }
    return fmt::format("{} is one argument too many for {}", word, name_of_command(app));
  }
  constexpr std::string_view conversion = "Could not convert: ";
  std::string text = error.what();
  if (text.starts_with(conversion)) return fmt::format("{} is no value of this option", text.substr(conversion.size()));
  return text;
}

}  // namespace trireme
