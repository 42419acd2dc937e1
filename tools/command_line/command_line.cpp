#include "command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <string_view>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/exit_code.hpp"

namespace trireme {
namespace {

constexpr int wrong_command_line = static_cast<int>(ExitCode::configuration);

// How many letters must be changed, added or removed to make one of the other.
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

// "; did you mean --steps?", where a name is near.
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

// The command that was chosen, or the program where it has none.
const CLI::App& chosen(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

std::string name_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : fmt::format("{} {}", parent->get_name(), app.get_name());
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

void add_version(CLI::App& app) {
  app.set_version_flag("--version", fmt::format("{} {}", app.get_name(), TRIREME_VERSION), "print the version");
}

std::string text_of(const CLI::ParseError& error, const CLI::App& app) {
  const CLI::App& command = chosen(app);
  for (const std::string& word : app.remaining(true)) {
    if (word.size() > 1 && word.starts_with('-')) {
      const std::string name = word.substr(0, word.find('='));
      return fmt::format("{} is no option of {}{}", name, name_of(command), suggestion(name, options_of(command)));
    }
    const auto commands = commands_of(app);
    if (&command == &app && !commands.empty()) {
      return fmt::format("{} is no command of {}{}", word, name_of(app), suggestion(word, commands));
    }
    return fmt::format("{} is one argument too many for {}", word, name_of(command));
  }
  constexpr std::string_view conversion = "Could not convert: ";
  const std::string text = error.what();
  if (text.starts_with(conversion)) return fmt::format("{} is no value of this option", text.substr(conversion.size()));
  return text;
}

std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv) {
  add_version(app);
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& end) {
    return app.exit(end);
  } catch (const CLI::ParseError& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: {}; {} --help lists what there is\n", app.get_name(), text_of(error, app), name_of(chosen(app)));
    return wrong_command_line;
  }
}

CLI::Validator above(double bound) {
  return CLI::Validator(
      [bound](const std::string& text) {
        double number = 0;
        const bool fits = CLI::detail::lexical_cast(text, number) && number > bound;
        return fits ? std::string() : fmt::format("{} is not above {}", text, bound);
      },
      fmt::format("above {}", bound));
}

CLI::Validator at_least(double least) {
  return CLI::Validator(
      [least](const std::string& text) {
        double number = 0;
        const bool fits = CLI::detail::lexical_cast(text, number) && number >= least;
        return fits ? std::string() : fmt::format("{} is not {} or more", text, least);
      },
      fmt::format("{} or more", least));
}

CLI::Validator between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        double number = 0;
        const bool fits = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
        return fits ? std::string() : fmt::format("{} does not lie in [{}, {}]", text, least, most);
      },
      fmt::format("{} to {}", least, most));
}

int run_tool(const std::string& program, const std::function<int()>& action) {
  try {
    return action();
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return wrong_command_line;
  }
}

}  // namespace trireme
