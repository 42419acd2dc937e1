#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

#include "trainer/command_line_text.hpp"
#include "trainer/number_option.hpp"

// Shared by the command lines of all programs.
namespace trireme {

// Adds --version and parses. Returns nothing if the program shall go on, else its exit code: 0 after --help and --version, 2
// after an error, which is printed on stderr in one line.
std::optional<int> parse_command_line(CLI::App& app, int argc, const char* const* argv);

void add_version(CLI::App& app);

// A check for the number of an option that add_number() added.
CLI::Validator above(double bound);
CLI::Validator at_least(double least);
CLI::Validator between(double least, double most);

// Runs `action`, which returns the exit code. If it throws, flushes stdout, prints the error on stderr and returns 2.
int run_tool(const std::string& program, const std::function<int()>& action);

}  // namespace trireme
