#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Parsers of bytes from untrusted sources, for the fuzzers and for parsers_test.
namespace trireme::fuzz {

struct Parser {
  std::string_view name;
  // An Error is a valid result. Any other exception is a finding, and so is an accepted input with a wrong result.
  void (*run)(std::span<const std::uint8_t> bytes);
  std::vector<std::string> (*seeds)();  // from which changed ones are made
};

std::vector<Parser> parsers();

}  // namespace trireme::fuzz
