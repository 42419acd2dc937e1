#pragma once

#include <string>

#include "tokenizers/text/regex.hpp"

namespace trireme::tokenizers {

// A pattern as PCRE2 takes it, with the same meaning. What has none is an Error.
std::string pattern_for_pcre2(const std::string& pattern, RegexRules rules);

}  // namespace trireme::tokenizers
