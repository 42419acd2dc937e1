#include "catch.hpp"
#include "tokenizers/text/normalizer.hpp"

TEST_CASE("without utf8proc a normalizer is an error that says what to do") {
  CHECK_THROWS_WITH(trireme::tokenizers::bert_normalizer({}),
                    ContainsSubstring("this build has no utf8proc") && ContainsSubstring("libutf8proc-dev"));
}
