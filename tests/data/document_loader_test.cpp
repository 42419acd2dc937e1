#include "trireme/data/loaders/document_loader.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/batch_loader.hpp"
#include "trireme/data/loaders/evaluation_batches.hpp"
#include "trireme/data/text/text_batch.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

using Ints = std::vector<std::int32_t>;

// Document i has lengths[i] tokens, of which the first is 100 * i, the next one more.
Documents documents_of(const std::vector<int>& lengths) {
  Documents documents;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    Ints tokens;
    for (int j = 0; j < lengths[i]; ++j) tokens.push_back(static_cast<std::int32_t>(100 * i) + j);
    documents.add(tokens);
  }
  return documents;
}

Ints list(const Tensor<std::int32_t>& tensor) { return {tensor.span().begin(), tensor.span().end()}; }

const std::vector<int> many{5, 1, 8, 3, 3, 7, 2, 4, 6, 1, 1, 8, 2, 5, 3, 4, 2, 7, 6, 1, 9, 4};

}  // namespace

static_assert(BatchLoader<DocumentLoader>);

TEST_CASE("a document is a row, padded, with targets for its own tokens alone") {
  const DocumentRows rows(documents_of({3, 1, 5}), {.length = 4, .pad_token = -1});
  REQUIRE(rows.size() == 3);
  CHECK(rows.num_cut_tokens() == 1);
  CHECK(rows.padding() == Approx(4.0 / 12));
  const TokenBatch batch = rows.collate(std::vector<std::int64_t>{0, 1, 2}, 7);
  CHECK(list(batch.tokens) == Ints{0, 1, 2, -1, 100, -1, -1, -1, 200, 201, 202, 203});
  CHECK(list(batch.targets) ==
        Ints{1, 2, no_target, no_target, no_target, no_target, no_target, no_target, 201, 202, 203, 204});
  CHECK_FALSE(batch.document_starts.defined());
  CHECK(batch.first_sample == 7);
}

TEST_CASE("packed rows hold whole documents, each where it leaves the least room") {
  // 6 and 2 fill a row; 5 and 3 the next; 4 and 3 leave one token over.
  const DocumentRows rows(documents_of({3, 2, 6, 5, 4, 3}), {.length = 8, .packing = true, .pad_token = 9});
  REQUIRE(rows.size() == 3);
  CHECK(rows.padding() == Approx(1.0 / 24));
  const TokenBatch batch = rows.collate(std::vector<std::int64_t>{2}, 0);
  CHECK(list(batch.tokens) == Ints{400, 401, 402, 403, 500, 501, 502, 9});
  CHECK(list(batch.targets) == Ints{401, 402, 403, no_target, 501, 502, no_target, no_target});
  CHECK(list(batch.document_starts) == Ints{0, 0, 0, 0, 4, 4, 4, 7});
  CHECK(list(rows.collate(std::vector<std::int64_t>{0}, 0).document_starts) == Ints{0, 0, 0, 0, 0, 0, 6, 6});
}

TEST_CASE("a document as long as a row fills it, and one of a token is a row or a part of one") {
  const DocumentRows rows(documents_of({8, 1}), {.length = 8, .packing = true});
  REQUIRE(rows.size() == 2);
  CHECK(list(rows.collate(std::vector<std::int64_t>{0}, 0).document_starts) == Ints(8, 0));
  CHECK(list(rows.collate(std::vector<std::int64_t>{1}, 0).document_starts) == Ints{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("packing loses no document and no target") {
  const Documents documents = documents_of(many);
  const DocumentRows rows(documents, {.length = 9, .packing = true, .pad_token = -1});
  std::multiset<std::int32_t> tokens, targets, expected_tokens, expected_targets;
  for (std::int64_t i = 0; i < documents.size(); ++i) {
    expected_tokens.insert(documents[i].tokens.begin(), documents[i].tokens.end());
    expected_targets.insert(documents[i].targets.begin(), documents[i].targets.end());
  }
  std::int64_t padded = 0;
  for (std::int64_t row = 0; row < rows.size(); ++row) {
    const TokenBatch batch = rows.collate(std::vector<std::int64_t>{row}, 0);
    for (std::int64_t j = 0; j < 9; ++j) {
      if (batch.tokens.data()[j] == -1) {
        ++padded;
        CHECK(batch.targets.data()[j] == no_target);
        continue;
      }
      tokens.insert(batch.tokens.data()[j]);
      targets.insert(batch.targets.data()[j]);
      const std::int32_t start = batch.document_starts.data()[j];
      CHECK(batch.tokens.data()[start] / 100 == batch.tokens.data()[j] / 100);  // of the same document,
      CHECK(batch.tokens.data()[start] % 100 == 0);                             // whose first token it is
    }
  }
  CHECK(tokens == expected_tokens);
  CHECK(targets == expected_targets);
  CHECK(rows.padding() == Approx(static_cast<double>(padded) / static_cast<double>(9 * rows.size())));
  CHECK(rows.size() == (documents.num_tokens() + 8) / 9);  // these lengths fit as closely as can be
}

TEST_CASE("documents longer than a row are truncated, split or refused") {
  const Documents documents = documents_of({2, 7});
  const DocumentRows split(documents, {.length = 3, .long_documents = LongDocuments::split});
  REQUIRE(split.size() == 4);
  const TokenBatch batch = split.collate(std::vector<std::int64_t>{1, 3}, 0);
  CHECK(list(batch.tokens) == Ints{100, 101, 102, 106, 0, 0});
  CHECK(list(batch.targets) == Ints{101, 102, 103, no_target, no_target, no_target});
  CHECK(split.num_cut_tokens() == 0);
  CHECK_THROWS_WITH(DocumentRows(documents, {.length = 3, .long_documents = LongDocuments::refused}),
                    "document 1 has 7 tokens, which is more than the 3 of a row; make rows longer, or let long documents be "
                    "truncated or split");
}

TEST_CASE("rows of no documents or without a length are errors") {
  CHECK_THROWS_WITH(DocumentRows(Documents(), {.length = 3}), "rows need at least one document");
  CHECK_THROWS_AS(DocumentRows(documents_of({1}), {.length = 0}), Error);
  const DocumentRows rows(documents_of({2, 3}), {.length = 3});
  CHECK_THROWS_WITH(rows.tokens_of(2), "row 2 does not exist among 2 rows");
  CHECK_THROWS_WITH(rows.collate(std::vector<std::int64_t>{1}, 0, 2), "row 1 has 3 tokens and does not fit 2");
  CHECK_THROWS_AS(DocumentLoader(rows, {.batch = {.batch_size = 2}, .pad_to_multiple_of = -1}), Error);
}

TEST_CASE("a step of documents is the same for any number of ranks and micro-batches, in each epoch each row once") {
  const bool packing = GENERATE(false, true);
  const std::int64_t multiple = GENERATE(0, 4);
  const DocumentRows rows(documents_of(many), {.length = 9, .packing = packing});
  const DocumentLoader whole(rows, {.batch = {.batch_size = 4, .seed = 3}, .pad_to_multiple_of = multiple});
  CHECK(whole.samples_per_epoch() == rows.size());
  std::multiset<std::int32_t> first_tokens;
  for (std::int64_t step = 0; step < rows.size(); ++step) {  // four epochs
    const TokenBatch all = whole.load(step);
    for (std::int64_t row = 0; row < 4; ++row) first_tokens.insert(all.tokens.data()[row * all.time()]);
    for (int rank = 0; rank < 2; ++rank) {
      const DocumentLoader part(rows, {.batch = {.batch_size = 4, .micro_batch_size = 1, .seed = 3, .index = rank, .count = 2},
                                       .pad_to_multiple_of = multiple});
      for (std::int64_t micro = 0; micro < 2; ++micro) {
        const TokenBatch one = part.load(step, micro);
        const std::int64_t row = 2 * rank + micro;
        CHECK(one.first_row == row);
        CHECK(one.first_sample == 4 * step + row);
        CHECK(list(one.tokens) == list(all.tokens.narrow(row, 1)));
        CHECK(list(one.targets) == list(all.targets.narrow(row, 1)));
        CHECK(one.document_starts.defined() == packing);
        if (packing) CHECK(list(one.document_starts) == list(all.document_starts.narrow(row, 1)));
      }
    }
  }
  for (std::int64_t row = 0; row < rows.size(); ++row) {
    const std::int32_t first = rows.collate(std::vector{row}, 0).tokens.data()[0];
    CHECK(first_tokens.count(first) == 4);
  }
}

TEST_CASE("a step's rows are as long as its longest document, rounded up") {
  const DocumentRows rows(documents_of({2, 3, 5, 9}), {.length = 10});
  const DocumentLoader loader(rows, {.batch = {.batch_size = 2}, .order = Order::sequential, .pad_to_multiple_of = 4});
  CHECK(loader.load(0).time() == 4);
  CHECK(loader.load(1).time() == 10);  // not 12
  CHECK(loader.tokens_per_sample() == 10);
}

TEST_CASE("documents are evaluated once over all ranks") {
  const DocumentRows rows(documents_of(many), {.length = 9, .packing = true});
  std::int64_t targets = 0;
  for (int rank = 0; rank < 3; ++rank) {
    for (const TokenBatch& batch : evaluation_batches(rows, {.batch_size = 6, .index = rank, .count = 3})) {
      for (const std::int32_t target : batch.targets.span()) targets += target == no_target ? 0 : 1;
    }
  }
  std::int64_t expected = 0;
  for (const int length : many) expected += length - 1;
  CHECK(targets == expected);
}
