#pragma once

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>

#include "trireme/core/error.hpp"

namespace trireme::test {

// Checks of this process that failed: an exit code can't tell an expected failure from another.
inline std::atomic<int> failed_checks = 0;

[[noreturn]] inline void fail_check(const std::string& expected) {
  ++failed_checks;
  throw std::runtime_error("expected: " + expected);
}

// A check on one rank of many: throws what was expected, so that launch reports it and ends all ranks.
template <typename... Args>
void expect(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) fail_check(fmt::format(format, std::forward<Args>(args)...));
}

// Runs `action`, which must throw Error{code} with all `parts` in its text; gives the error.
template <typename Action, typename... Parts>
Error expect_error(ErrorCode code, Action action, Parts... parts) {
  try {
    action();
  } catch (const Error& error) {
    expect(error.code() == code, "an error \"{}\", got \"{}\": {}", name_of(code), name_of(error.code()), error.what());
    const std::string text = error.what();
    (expect(text.find(std::string_view(parts)) != std::string::npos, "\"{}\" in the text: {}", parts, text), ...);
    return error;
  }
  fail_check(fmt::format("an error \"{}\", nothing was thrown", name_of(code)));
}

}  // namespace trireme::test
