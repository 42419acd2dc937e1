#pragma once

#include <string>

namespace trireme::tokenizers {

// A pattern of Oniguruma as PCRE2 takes it, with the same meaning. What has none is an Error.
std::string pattern_for_pcre2(const std::string& pattern);

}  // namespace trireme::tokenizers
