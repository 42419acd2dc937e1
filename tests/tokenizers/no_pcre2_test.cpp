#include "catch.hpp"
#include "tokenizers/text/regex.hpp"

TEST_CASE("without PCRE2 a regular expression is an error that says what to do") {
  CHECK_THROWS_WITH(trireme::tokenizers::Regex("a", trireme::tokenizers::RegexRules::rust),
                    ContainsSubstring("this build has no PCRE2") && ContainsSubstring("libpcre2-dev"));
}
