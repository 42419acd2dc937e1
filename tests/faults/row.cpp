#include "faults/row.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

namespace trireme::tests {

void Row::attempt(const std::string& what, const std::function<void()>& action) {
  ++asked_;
  try {
    action();
    ++seen_;
  } catch (const std::exception& error) {
    fmt::print("FAILED: {}: {}\n", what, error.what());
    std::fflush(stdout);
  }
}

std::string Row::str() const {
  return fmt::format("| {} | {} | {} | {} | {}{}{} |", area_, done_, asked_, seen_, passed() ? "passed" : "FAILED",
                     note_.empty() ? "" : "; ", note_);
}

}  // namespace trireme::tests
