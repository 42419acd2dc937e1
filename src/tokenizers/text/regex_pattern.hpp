#pragma once

#include <string>

#include "tokenizers/text/regex.hpp"

namespace trireme::tokenizers {

// Translates a pattern to one with the same meaning in PCRE2. Throws Error if there is none.
std::string pattern_for_pcre2(const std::string& pattern, RegexRules rules);

}  // namespace trireme::tokenizers
