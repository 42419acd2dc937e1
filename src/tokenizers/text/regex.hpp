#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trireme/core/range.hpp"

namespace trireme::tokenizers {

// The library that a regular expression is written for, and whose meaning it keeps. What PCRE2 understands differently is an
// Error.
enum class RegexRules {
  oniguruma,  // tokenizer.json: ^ and $ are ends of lines
  rust,       // tiktoken: they are ends of the text
};

// Thread-safe.
class Regex {
 public:
  Regex(const std::string& pattern, RegexRules rules);

  // Calls visit(Range) for each match that is not empty, from left to right. The text is valid UTF-8.
  template <typename Visit>
  void for_matches(std::string_view text, const Visit& visit) const {
    Match match(*this, text);
    while (match.next()) visit(Range{.begin = match.begin, .end = match.end});
  }

 private:
  struct Code;

  struct Match {
    Match(const Regex& regex, std::string_view text);
    bool next();

    const Regex& regex;
    std::string_view text;
    std::int64_t begin = 0, end = 0;
  };

  std::string pattern_;
  std::shared_ptr<const Code> code_;
};

}  // namespace trireme::tokenizers
