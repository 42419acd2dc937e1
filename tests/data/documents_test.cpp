#include "trireme/data/documents.hpp"

#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/text_batch.hpp"

using namespace trireme;
using data::no_target;

namespace {
std::vector<std::int32_t> list(std::span<const std::int32_t> values) { return {values.begin(), values.end()}; }
}  // namespace

TEST_CASE("documents of different length keep their tokens and targets") {
  data::Documents documents;
  CHECK(documents.size() == 0);
  documents.add(std::vector<std::int32_t>{5, 6, 7});
  documents.add(std::vector<std::int32_t>{9});
  const std::vector<std::int32_t> tokens{1, 2, 3, 4}, targets{no_target, 3, 4, no_target};
  documents.add({.tokens = tokens, .targets = targets});
  REQUIRE(documents.size() == 3);
  CHECK(documents.num_tokens() == 8);
  CHECK(list(documents[0].tokens) == std::vector<std::int32_t>{5, 6, 7});
  CHECK(list(documents[0].targets) == std::vector<std::int32_t>{6, 7, no_target});
  CHECK(list(documents[1].tokens) == std::vector<std::int32_t>{9});
  CHECK(list(documents[1].targets) == std::vector<std::int32_t>{no_target});
  CHECK(list(documents[2].tokens) == tokens);
  CHECK(list(documents[2].targets) == targets);
}

TEST_CASE("documents without tokens, with other targets or beyond the last one are errors") {
  data::Documents documents;
  const std::vector<std::int32_t> tokens{1, 2}, one{1};
  CHECK_THROWS_WITH(documents.add(std::span<const std::int32_t>{}), "document 0 has no tokens");
  CHECK_THROWS_WITH(documents.add({.tokens = tokens, .targets = one}), "document 0 has 2 tokens and 1 targets");
  CHECK_THROWS_WITH(documents[0], "document 0 of 0");
}
