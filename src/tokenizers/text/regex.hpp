#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizers/text/known_patterns.hpp"
#include "trireme/core/range.hpp"

namespace trireme::tokenizers {

// The library that a regular expression is written for. Its meaning is kept; parts that PCRE2 treats differently throw Error.
enum class RegexRules {
  oniguruma,  // tokenizer.json: ^ and $ match at ends of lines
  rust,       // tiktoken: they match at the ends of the text
};

// Thread-safe.
class Regex {
 public:
  Regex(const std::string& pattern, RegexRules rules);

  // Calls visit(Range) for each non-empty match, from left to right. The text must be valid UTF-8.
  template <typename Visit>
  void for_matches(std::string_view text, const Visit& visit) const {
    if (known_) return for_matches_of(*known_, text, visit);
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
  std::optional<KnownPattern> known_;
  std::shared_ptr<const Code> code_;
};

}  // namespace trireme::tokenizers
