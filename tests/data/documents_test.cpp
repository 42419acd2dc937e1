#include "trireme/data/documents/documents.hpp"

#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/documents/split_documents.hpp"
#include "trireme/data/text/text_batch.hpp"

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

TEST_CASE("a document is added once more, wherever its tokens lie") {
  data::Documents documents;
  documents.add(std::vector<std::int32_t>{5, 6, 7});
  for (int i = 0; i < 20; ++i) {
    documents.add(documents[i / 2].tokens);
    documents.add(documents[i]);
  }
  REQUIRE(documents.size() == 41);
  for (std::int64_t i = 0; i < documents.size(); ++i) {
    CHECK(list(documents[i].tokens) == std::vector<std::int32_t>{5, 6, 7});
    CHECK(list(documents[i].targets) == std::vector<std::int32_t>{6, 7, no_target});
  }
}

TEST_CASE("documents without tokens, with other targets or beyond the last one are errors") {
  data::Documents documents;
  const std::vector<std::int32_t> tokens{1, 2}, one{1};
  CHECK_THROWS_WITH(documents.add(std::span<const std::int32_t>{}), "document 0 has no tokens");
  CHECK_THROWS_WITH(documents.add({.tokens = tokens, .targets = one}), "document 0 has 2 tokens and 1 targets");
  CHECK_THROWS_WITH(documents[0], "document 0 does not exist among 0 documents");
}

TEST_CASE("a separator ends a document and is its last token") {
  const auto documents = data::split_documents(data::TokenDataset::from_tokens({0, 5, 6, 0, 0, 7, 0, 8, 9}), 0);
  REQUIRE(documents.size() == 3);
  CHECK(list(documents[0].tokens) == std::vector<std::int32_t>{5, 6, 0});
  CHECK(list(documents[0].targets) == std::vector<std::int32_t>{6, 0, no_target});
  CHECK(list(documents[1].tokens) == std::vector<std::int32_t>{7, 0});
  CHECK(list(documents[2].tokens) == std::vector<std::int32_t>{8, 9});
  CHECK(data::split_documents(data::TokenDataset::from_tokens({0, 0}), 0).size() == 0);

  std::vector<std::int32_t> many(200'000, 3);  // more than are read at once
  many[99'999] = 0;
  const auto halves = data::split_documents(data::TokenDataset::from_tokens(many), 0);
  REQUIRE(halves.size() == 2);
  CHECK(halves[0].tokens.size() == 100'000);
  CHECK(halves[1].tokens.size() == 100'000);
}
