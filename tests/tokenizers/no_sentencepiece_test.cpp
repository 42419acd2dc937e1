#include "catch.hpp"
#include "tokenizers/files/sentencepiece_codec.hpp"

TEST_CASE("without sentencepiece its models are an error that says what to do") {
  CHECK_THROWS_WITH(trireme::tokenizers::read_sentencepiece("tokenizer.model"),
                    ContainsSubstring("this build has no sentencepiece") && ContainsSubstring("libsentencepiece-dev"));
}
