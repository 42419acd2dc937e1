#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "trireme/core/error.hpp"

namespace trireme::test {

// A check on one rank of many: throws what was expected, so that launch reports it and ends all ranks.
template <typename... Args>
void expect(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) throw std::runtime_error("expected: " + fmt::format(format, std::forward<Args>(args)...));
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
  throw std::runtime_error(fmt::format("expected an error \"{}\", nothing was thrown", name_of(code)));
}

}  // namespace trireme::test
