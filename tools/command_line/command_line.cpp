#include "command_line.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "trireme/core/error.hpp"
#include "trireme/core/exit_code.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/core/version.hpp"

namespace trireme {
namespace {

constexpr int wrong_command_line = static_cast<int>(ExitCode::configuration);

}  // namespace

void add_version(CLI::App& app) {
  app.set_version_flag("--version", fmt::format("{} {}", app.get_name(), version()), "print the version");
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
    fmt::print(stderr, "{}: {}; {} --help lists what there is\n", app.get_name(), text_of(error, app), name_of_command(app));
    return wrong_command_line;
  }
}

CLI::Validator above(double bound) {
  return CLI::Validator(
      [bound](const std::string& text) {
        const auto number = parse_number<double>(text);
        const bool fits = number && *number > bound;
        return fits ? std::string() : fmt::format("{} is not above {}", text, bound);
      },
      fmt::format("above {}", bound));
}

CLI::Validator at_least(double least) {
  return CLI::Validator(
      [least](const std::string& text) {
        const auto number = parse_number<double>(text);
        const bool fits = number && *number >= least;
        return fits ? std::string() : fmt::format("{} is not {} or more", text, least);
      },
      fmt::format("{} or more", least));
}

CLI::Validator between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        const auto number = parse_number<double>(text);
        const bool fits = number && *number >= least && *number <= most;
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
