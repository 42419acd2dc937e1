#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

#include "trainer/command_line_text.hpp"
#include "trainer/number_option.hpp"

// What the command lines of all programs share.
namespace trireme {

// Adds --version. Nothing: all was parsed. Else the exit code of a program that ends here: 0 after --help and --version, and 2
// after an error, which is told on stderr in one line.
std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv);

void add_version(CLI::App& app);

// A check of the number that an option of add_number() has.
CLI::Validator above(double bound);
CLI::Validator at_least(double least);
CLI::Validator between(double least, double most);

// Runs `action`, which gives the exit code. What it throws is told on stderr, after what was written to stdout, and gives 2.
int run_tool(const std::string& program, const std::function<int()>& action);

}  // namespace trireme
