#include "tokenizers/text/regex.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {

struct Regex::Code {};

Regex::Regex(const std::string& pattern, RegexRules) : pattern_(pattern) {
  throw Error({.code = ErrorCode::not_available,
               .message = "this build has no PCRE2: a tokenizer with a regular expression can't be read",
               .had = pattern,
               .hint = "install libpcre2-dev and build again"});
}

Regex::Match::Match(const Regex& of, std::string_view in) : regex(of), text(in) {}

bool Regex::Match::next() { return false; }

}  // namespace trireme::tokenizers
