#include "trireme/math/random.hpp"

#include <array>

#include "catch.hpp"
#include "trireme/core/philox.hpp"

using trireme::math::philox;

// The known answers that the authors of Philox publish with Random123.
TEST_CASE("Philox gives the published words") {
  const auto zeros = philox(0, 0, 0);
  CHECK(zeros.word0 == 0x6627e8d5);
  CHECK(zeros.word1 == 0xe169c58d);
  CHECK(zeros.word2 == 0xbc57ac4c);
  CHECK(zeros.word3 == 0x9b00dbd8);
  const auto ones = philox(~0ull, ~0ull, ~0ull);
  CHECK(ones.word0 == 0x408f276d);
  CHECK(ones.word1 == 0x41c83b0e);
  CHECK(ones.word2 == 0xa20bc7c6);
  CHECK(ones.word3 == 0x6d5451fd);
  const auto pi = philox(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822);
  CHECK(pi.word0 == 0xd16cfe09);
  CHECK(pi.word1 == 0x94fdcceb);
  CHECK(pi.word2 == 0x5001e420);
  CHECK(pi.word3 == 0x24126ea1);
}

TEST_CASE("Philox of math and of core are the same numbers") {
  const auto words = philox(41, 42, 43);
  const auto of_core = trireme::philox(43, 42, 41);
  CHECK(std::array{words.word0, words.word1, words.word2, words.word3} == of_core);
}
