#include "trireme/data/documents/length_batches.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/evaluation_batches.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/loaders/prefetching.hpp"
#include "trireme/data/sources/joined.hpp"
#include "trireme/data/text/text_batch.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

// Documents of 1 to 40 tokens, which count on from 0.
std::vector<std::vector<std::int32_t>> counting_documents(std::int64_t count) {
  std::vector<std::vector<std::int32_t>> documents;
  std::int32_t next = 0;
  for (std::int64_t number = 0; number < count; ++number) {
    documents.emplace_back(static_cast<std::size_t>(1 + number * 7919 % 40));
    for (std::int32_t& token : documents.back()) token = next++;
  }
  return documents;
}

TokenShards shards_of(const tests::TemporaryFolder& folder, const std::vector<std::vector<std::int32_t>>& documents) {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> ends;
  for (const auto& document : documents) {
    tokens.insert(tokens.end(), document.begin(), document.end());
    ends.push_back(std::ssize(tokens));
  }
  write_token_shard(folder.path() / "shard", tokens, ends, {}, 100'000);
  return TokenShards({folder.path() / "shard"});
}

Documents in_memory(const std::vector<std::vector<std::int32_t>>& all) {
  Documents documents;
  for (const auto& tokens : all) documents.add(tokens);
  return documents;
}

// Checks the rows of a batch, adds up its tokens without padding, and counts how often each token was read.
void check_rows(const TokenBatch& batch, std::map<std::int32_t, int>& seen) {
  for (std::int64_t row = 0; row < batch.rows(); ++row) {
    const std::int32_t* tokens = batch.tokens.data() + row * batch.time();
    const std::int32_t* targets = batch.targets.data() + row * batch.time();
    bool is_over = false;
    for (std::int64_t at = 0; at < batch.time(); ++at) {
      if (is_over) {
        REQUIRE((tokens[at] == -1 && targets[at] == no_target));
        continue;
      }
      REQUIRE(tokens[at] >= 0);
      ++seen[tokens[at]];
      is_over = targets[at] == no_target;
      if (!is_over) REQUIRE(targets[at] == tokens[at] + 1);
    }
    REQUIRE(is_over);
  }
}

}  // namespace

TEST_CASE("batches of documents of about one length hold each once an epoch, within their bounds, on any number of ranks") {
  const tests::TemporaryFolder folder;
  const auto documents = counting_documents(300);
  const TokenShards shards = shards_of(folder, documents);
  const Documents memory = in_memory(documents);
  const std::int64_t num_tokens = memory.num_tokens();
  for (LengthBatchesOptions options : {LengthBatchesOptions{.max_tokens = 128},
                                       {.max_rows = 8},
                                       {.max_tokens = 128, .max_rows = 5, .pad_to_multiple_of = 1},
                                       {.max_tokens = 100, .documents_at_once = 64}}) {
    options.length = 40;
    options.pad_token = -1;
    const LengthBatches batches(shards, options), of_memory(memory, options);
    CHECK(batches.size() == of_memory.size());
    CHECK(batches.neighbours() == (batches.size() - 1) / ((300 - 1) / options.documents_at_once + 1) + 1);
    std::int64_t padded = 0, largest = 0;
    for (std::int64_t number = 0; number < batches.size(); ++number) {
      const TokenBatch batch = batches.collate(std::vector{number}, number);
      CHECK(batch.tokens.numel() <= (options.max_tokens > 0 ? options.max_tokens : 8 * 40));
      CHECK(batch.nominal_targets == (options.max_tokens > 0 ? options.max_tokens : 8 * 40));
      if (options.max_rows > 0) CHECK(batch.rows() <= options.max_rows);
      CHECK(batch.time() % options.pad_to_multiple_of == 0);
      padded += batch.tokens.numel();
      largest = std::max(largest, batch.rows());
      CHECK(batches.pieces_of(number).front().count > batch.time() - options.pad_to_multiple_of);
    }
    CHECK(batches.padding() == Approx(1 - static_cast<double>(num_tokens) / static_cast<double>(padded)));
    if (options.documents_at_once > 300) CHECK(batches.padding() < 0.2);
    CHECK(batches.tokens_per_sample() == std::llround(static_cast<double>(num_tokens) / static_cast<double>(batches.size())));
    if (options.max_rows == 0) CHECK(largest > 10);  // short documents

    const auto read = [&](const auto& dataset, int ranks, std::int64_t begin, std::int64_t end,
                          std::map<std::int32_t, int>& seen) {
      std::vector<std::vector<std::int32_t>> rows;
      std::set<std::int64_t> numbers;
      for (std::int64_t step = begin; step < end; ++step) {
        for (int rank = 0; rank < ranks; ++rank) {
          const Prefetching loader(Loader(dataset, BatchOptions{.batch_size = 12, .index = rank, .count = ranks}));
          REQUIRE(loader.num_micro_batches() == 12 / ranks);
          for (std::int64_t micro_batch = 0; micro_batch < loader.num_micro_batches(); ++micro_batch) {
            const TokenBatch batch = loader.load(step, micro_batch);
            check_rows(batch, seen);
            rows.emplace_back(batch.tokens.span().begin(), batch.tokens.span().end());
            for (std::int64_t row = 0; row < batch.rows(); ++row) CHECK(numbers.insert(batch.first_sample + row).second);
          }
        }
      }
      return rows;
    };
    const std::int64_t steps = batches.size();  // 12 epochs
    std::map<std::int32_t, int> seen;
    const auto whole = read(batches, 1, 0, steps, seen);
    REQUIRE(std::ssize(seen) == num_tokens);
    for (const auto& [token, times] : seen) REQUIRE(times == 12);
    for (const int ranks : {2, 3, 4}) {
      std::map<std::int32_t, int> again;
      CHECK(read(of_memory, ranks, 0, 3, again) == std::vector(whole.begin(), whole.begin() + 36));
      CHECK(read(batches, ranks, 5, 7, again) == std::vector(whole.begin() + 60, whole.begin() + 84));
    }
  }
}

TEST_CASE("long documents are split or truncated for batches of one length, and targets in memory are kept") {
  const tests::TemporaryFolder folder;
  const auto documents = counting_documents(40);
  const LengthBatchesOptions split{.max_tokens = 64, .length = 16, .pad_token = -1};
  for (const LengthBatches& batches :
       {LengthBatches(shards_of(folder, documents), split), LengthBatches(in_memory(documents), split)}) {
    std::map<std::int32_t, int> tokens;
    for (std::int64_t number = 0; number < batches.size(); ++number) {
      const TokenBatch batch = batches.collate(std::vector{number}, 0);
      for (std::int64_t at = 0; at < batch.tokens.numel(); ++at) {
        if (batch.tokens.data()[at] >= 0) ++tokens[batch.tokens.data()[at]];
        if (batch.targets.data()[at] != no_target) CHECK(batch.targets.data()[at] == batch.tokens.data()[at] + 1);
      }
    }
    CHECK(std::ssize(tokens) == in_memory(documents).num_tokens());
  }
  const LengthBatches truncated(in_memory(documents),
                                {.max_rows = 4, .length = 16, .long_documents = LongDocuments::truncated});
  std::int64_t cut = 0;
  for (const auto& document : documents) cut += std::max<std::int64_t>(0, std::ssize(document) - 16);
  CHECK(truncated.num_cut_tokens() == cut);

  Documents learnt;
  learnt.add({.tokens = std::vector<std::int32_t>{5, 6, 7}, .targets = std::vector<std::int32_t>{no_target, 7, 9}});
  const TokenBatch batch = LengthBatches(learnt, {.max_rows = 1, .length = 8}).collate(std::vector<std::int64_t>{0}, 7);
  CHECK(std::ranges::equal(batch.targets.span().first(4), std::vector<std::int32_t>{no_target, 7, 9, no_target}));
  CHECK(batch.first_sample == 7 * 65'536);
}

TEST_CASE("batches of documents are mixed, and evaluated once over all ranks") {
  const auto documents = counting_documents(100);
  const LengthBatchesOptions options{.max_tokens = 80, .length = 40, .pad_token = -1};
  const std::vector<std::vector<std::int32_t>> half(documents.begin(), documents.begin() + 50);
  const Joined joined(std::vector{LengthBatches(in_memory(documents), options), LengthBatches(in_memory(half), options)});
  const Loader loader(joined, {.batch = {.batch_size = 4, .index = 1, .count = 2}, .mixture = {{0, {0.5, 0.5}}}});
  CHECK(loader.num_micro_batches() == 2);
  CHECK(loader.load(3, 1).tokens.numel() <= 80);
  CHECK(loader.load(3, 1).nominal_targets == 80);

  std::map<std::int32_t, int> seen;
  for (int rank = 0; rank < 3; ++rank) {
    for (const TokenBatch& batch :
         evaluation_batches(joined.part(0), {.batch_size = 6, .index = rank, .count = 3})) {  // two batches at once
      check_rows(batch, seen);
    }
  }
  CHECK(std::ssize(seen) == in_memory(documents).num_tokens());
  for (const auto& [token, times] : seen) REQUIRE(times == 1);
}

TEST_CASE("batches of documents that make no sense are refused") {
  const auto refused = [](const LengthBatchesOptions& options, const char* part) {
    CHECK_THROWS_WITH(LengthBatches(in_memory(counting_documents(9)), options), ContainsSubstring(part));
  };
  refused({}, "a max_tokens or a max_rows above 0, got 0 and 0");
  refused({.max_tokens = -1, .max_rows = 4}, "got -1 and 4");
  refused({.max_rows = 70'000}, "at most 65536 rows");
  refused({.max_tokens = 100, .length = 128}, "batches of at most 100 tokens cannot hold a row of 128");
  refused({.max_tokens = 100, .length = 0}, "at least one token");
  refused({.max_tokens = 100, .length = 64, .pad_to_multiple_of = 0}, "multiple of 0");
  refused({.max_tokens = 100, .length = 64, .documents_at_once = 0}, "at least one at a time");
  refused({.max_tokens = 100, .length = 4, .long_documents = LongDocuments::refused}, "more than the 4 of a row");
  CHECK_THROWS_WITH(LengthBatches(Documents(), {.max_rows = 4}), ContainsSubstring("at least one document"));

  const LengthBatches batches(in_memory(counting_documents(9)), {.max_rows = 2, .length = 64});
  CHECK_THROWS_WITH(batches.collate({}, 0), ContainsSubstring("no batches"));
  CHECK_THROWS_WITH(batches.collate(std::vector{batches.size()}, 0), ContainsSubstring("row"));
  CHECK_THROWS_WITH(batches.collate(std::vector<std::int64_t>{0}, std::int64_t{1} << 50), ContainsSubstring("overflow"));
  CHECK(batches.content() != LengthBatches(in_memory(counting_documents(9)), {.max_rows = 3, .length = 64}).content());
  CHECK_THROWS_WITH(Loader(batches, BatchOptions{.batch_size = 4, .micro_batch_size = 2}),
                    ContainsSubstring("whole micro-batches, so a micro-batch cannot have 2"));
  CHECK_THROWS_WITH(Loader(batches, BatchOptions{.batch_size = 4, .batch_size_from_step = {{3, 8}}}),
                    ContainsSubstring("leave batch_size_from_step out"));
}
