#pragma once

#include <string>

#include "trireme/core/export.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace trireme {

// "program", or "program command" if a command was chosen.
TRIREME_EXPORT std::string name_of_command(const CLI::App& app);

// "--widht is no option of program; did you mean --width?"
std::string text_of_unknown(const std::string& option, const CLI::App& app);

// One line for an error of a command line. For an unknown option or command it suggests a similar one.
TRIREME_EXPORT std::string text_of(const CLI::ParseError& error, const CLI::App& app);

}  // namespace trireme
