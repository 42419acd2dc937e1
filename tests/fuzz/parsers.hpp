#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What reads bytes that somebody else may have written, for the fuzzers and for parsers_test.
namespace trireme::fuzz {

struct Parser {
  std::string_view name;
  // An Error is an answer. Any other exception is a finding, and so is what is accepted and then isn't what it should be.
  void (*run)(std::span<const std::uint8_t> bytes);
  std::vector<std::string> (*seeds)();  // from which changed ones are made
};

std::vector<Parser> parsers();

}  // namespace trireme::fuzz
