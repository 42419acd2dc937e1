#include "trireme/data/shards/cut_shards.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/shards/token_shard_writer.hpp"
#include "trireme/data/sources/locations_of.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

using Document = std::pair<std::vector<std::int32_t>, std::int32_t>;

// Each one twice.
std::vector<Document> some_documents() {
  std::vector<Document> documents;
  for (std::int32_t number = 0; number < 200; ++number) {
    documents.emplace_back(std::vector<std::int32_t>(static_cast<std::size_t>(number % 9 + 1), number % 100), number / 50);
  }
  return documents;
}

TokenShards written(const Location& prefix, const std::vector<Document>& documents, std::int64_t shard_tokens) {
  TokenShardWriter writer(prefix, {.shard_tokens = shard_tokens, .largest_token = 70'000, .metadata = {{"tokenizer", "mine"}}});
  for (const auto& [tokens, source] : documents) writer.add(tokens, source);
  writer.end_shard();
  writer.end_shard();  // of nothing
  return TokenShards(locations_of(prefix.parent().string()));
}

std::vector<Document> documents_of(const TokenShards& shards) {
  std::vector<Document> documents;
  for (std::int64_t number = 0; number < shards.size(); ++number)
    documents.emplace_back(shards.at(number), shards.source_of(number));
  return documents;
}

std::map<std::string, std::string> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

TokenShards shards_below(const std::filesystem::path& folder) {
  TokenShards shards(locations_of(folder.string()));
  shards.verify();
  return shards;
}

}  // namespace

TEST_CASE("a writer cuts shards at a number of tokens") {
  const tests::TemporaryFolder folder;
  const Location prefix = folder.path() / "a/x";
  const TokenShards shards = written(prefix, {{{1, 2, 3}, 0}, {{4}, 0}, {{5, 6}, 1}, {{1, 2, 3, 4, 5, 6, 7}, 0}, {{8}, 0}}, 4);
  CHECK(shards.num_shards() == 4);
  CHECK(TokenShards({token_shard(prefix, 0)}).size() == 2);
  CHECK(TokenShards({token_shard(prefix, 2)}).num_tokens() == 7);
  std::vector<std::int64_t> lengths(4);
  shards.read_lengths(1, lengths);
  CHECK(lengths == std::vector<std::int64_t>{1, 2, 7, 1});
  CHECK_THROWS_AS(shards.read_lengths(2, lengths), Error);
  CHECK_THROWS_AS(shards.read_lengths(-1, lengths), Error);
  CHECK(token_shard(prefix, 123'456).name() == "x-123456.safetensors");
  std::ofstream(folder.path() / "a/x-7.safetensors");
  std::ofstream(folder.path() / "a/x-00009.safetensors.1-0.tmp");
  std::ofstream(folder.path() / "a/xy-00000.safetensors");
  CHECK(numbers_of_token_shards(prefix) == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(earlier_token_shards(prefix, {{"tokenizer", "mine"}}).size() == 4);
  CHECK_THROWS_WITH(earlier_token_shards(prefix, {{"tokenizer", "yours"}}), ContainsSubstring("of another tokenizer"));
  CHECK_THROWS_AS(earlier_token_shards(prefix, {{"recipe", ""}}), Error);
  CHECK(earlier_token_shards(folder.path() / "a/y", {{"tokenizer", "yours"}}).empty());
  remove_unfinished_token_shards(prefix);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "a/x-00009.safetensors.1-0.tmp"));
  CHECK(std::filesystem::exists(folder.path() / "a/x-7.safetensors"));

  TokenShardWriter writer(folder.path() / "b", {.largest_token = 5});
  CHECK_THROWS_AS(writer.add(std::vector<std::int32_t>()), Error);
  CHECK_THROWS_AS(writer.add(std::vector<std::int32_t>{6}), Error);
  CHECK_THROWS_AS(writer.add(std::vector<std::int32_t>{3, -1}), Error);
  CHECK_THROWS_AS(TokenShardWriter("b", {.shard_tokens = 0}), Error);
  CHECK_THROWS_AS(TokenShardWriter("b/", {}), Error);
}

TEST_CASE("shards cut anew have the same documents, in their order or a random one") {
  const tests::TemporaryFolder folder;
  const std::vector<Document> documents = some_documents();
  const TokenShards shards = written(folder.path() / "in/x", documents, 100);
  CHECK(shards.largest_token() == 99);
  CHECK(cut_shards(shards, folder.path() / "whole/x").shards == 1);
  const TokenShards whole = shards_below(folder.path() / "whole");
  CHECK(documents_of(whole) == documents);
  CHECK(whole.metadata().at("tokenizer") == "mine");
  cut_shards(shards, folder.path() / "random/x", {.shard_tokens = 300, .shuffle_seed = 5});
  cut_shards(whole, folder.path() / "random_again/x", {.shard_tokens = 70, .shuffle_seed = 5});
  const auto shuffled = documents_of(shards_below(folder.path() / "random"));
  CHECK(shuffled != documents);
  CHECK(shuffled == documents_of(shards_below(folder.path() / "random_again")));
  CHECK(std::multiset<Document>(shuffled.begin(), shuffled.end()) ==
        std::multiset<Document>(documents.begin(), documents.end()));
  CHECK(cut_shards(shards, folder.path() / "whole/x").shards_found == 1);
  CHECK_THROWS_WITH(cut_shards(shards, folder.path() / "whole/x", {.shard_tokens = 7}),
                    ContainsSubstring("other options") && ContainsSubstring("x-00000"));
  CHECK_THROWS_WITH(cut_shards(whole, folder.path() / "random/x", {.shard_tokens = 300, .shuffle_seed = 6}),
                    ContainsSubstring("other options"));
}

TEST_CASE("documents are held out by their content") {
  const tests::TemporaryFolder folder;
  const std::vector<Document> documents = some_documents();
  const TokenShards shards = written(folder.path() / "in/x", documents, 100);
  const SplitShardsReport report = split_shards(shards, folder.path() / "one/x", {.fraction = 0.2, .seed = 3});
  CHECK(report.held_out_documents + report.training_documents == 200);
  CHECK(report.held_out_documents > 20);
  CHECK(report.held_out_documents < 60);
  const auto held_out = documents_of(TokenShards({token_shard(folder.path() / "one/x-held-out", 0)}));
  const auto training = documents_of(TokenShards({token_shard(folder.path() / "one/x-training", 0)}));
  CHECK(std::ssize(held_out) == report.held_out_documents);
  std::vector<Document> in_order;  // those of both sides, as they were
  for (const auto& [tokens, source] : documents) {
    const auto is_same = [&tokens = tokens](const Document& other) { return other.first == tokens; };
    const bool is_held_out = std::ranges::any_of(held_out, is_same);
    CHECK(is_held_out != std::ranges::any_of(training, is_same));
    if (is_held_out) in_order.emplace_back(tokens, source);
  }
  CHECK(in_order == held_out);

  std::vector<Document> backwards(documents.rbegin(), documents.rend());
  split_shards(written(folder.path() / "back/x", backwards, 50), folder.path() / "two/x", {.fraction = 0.2, .seed = 3});
  auto again = documents_of(TokenShards({token_shard(folder.path() / "two/x-held-out", 0)}));
  std::ranges::reverse(again);
  CHECK(again == held_out);
  split_shards(shards, folder.path() / "three/x", {.fraction = 0.2, .seed = 4});
  CHECK(documents_of(TokenShards({token_shard(folder.path() / "three/x-held-out", 0)})) != held_out);

  CHECK_THROWS_AS(split_shards(shards, folder.path() / "one/x"), Error);
  CHECK_THROWS_AS(split_shards(shards, folder.path() / "four/x", {.fraction = 0}), Error);
  CHECK_THROWS_AS(split_shards(shards, folder.path() / "four/x", {.fraction = 1e-9}), Error);
  CHECK_THROWS_AS(split_shards(shards, folder.path() / "four/x", {.fraction = 1 - 1e-9}), Error);
}

TEST_CASE("any number of ranks writes the same shards, and a start after a kill those that are missing") {
  const tests::TemporaryFolder folder;
  const TokenShards shards = written(folder.path() / "in/x", some_documents(), 100);
  // A number of shards that are found; below 0: that are missing.
  const auto run = [&](int ranks, const std::string& name, std::int64_t cut_found, std::int64_t split_found) {
    testing::run_ranks(ranks, [&](const Group& world) {
      const CutOptions cutting{.shard_tokens = 90, .shuffle_seed = 5, .workers = ranks};
      const CutReport cut = cut_shards(shards, folder.path() / name / "cut", cutting, &world);
      CHECK(cut.shards > 10);
      CHECK(cut.shards_found == (cut_found < 0 ? cut.shards + cut_found : cut_found));
      const SplitShardsOptions splitting{.fraction = 0.2, .seed = 3, .shard_tokens = 90, .workers = ranks};
      const SplitShardsReport split = split_shards(shards, folder.path() / name / "split", splitting, &world);
      CHECK(split.shards > 10);
      CHECK(split.shards_found == (split_found < 0 ? split.shards + split_found : split_found));
    });
  };
  run(1, "1", 0, 0);
  const auto expected = files_in(folder.path() / "1");
  run(3, "3", 0, 0);
  CHECK(files_in(folder.path() / "3") == expected);

  for (const char* name : {"cut-00000", "cut-00007", "split-training-00002", "split-held-out-00000"})
    REQUIRE(std::filesystem::remove(folder.path() / "3" / (std::string(name) + ".safetensors")));
  std::ofstream(folder.path() / "3/cut-00007.safetensors.77-0.tmp") << "half";
  std::ofstream(folder.path() / "3/split-training-00002.safetensors.77-0.tmp") << "half";
  run(2, "3", -2, -2);
  CHECK(files_in(folder.path() / "3") == expected);
  testing::run_ranks(2, [&](const Group& world) {
    CHECK_THROWS_WITH(split_shards(shards, folder.path() / "3/split", {.fraction = 0.3, .seed = 3, .shard_tokens = 90}, &world),
                      ContainsSubstring("other options"));
  });
}

TEST_CASE("what is not as the metadata tell is found") {
  const tests::TemporaryFolder folder;
  const Location file = folder.path() / "x.safetensors";
  const std::vector<std::int32_t> tokens{1, 2, 3};
  const std::vector<std::int64_t> ends{1, 3};
  write_token_shard(file, tokens, ends, {}, 10);
  SafetensorsMetadata metadata = TokenShards({file}).metadata();
  const std::vector<std::uint16_t> good{1, 2, 3}, other{1, 2, 2}, large{1, 2, 9};
  const auto verifies = [&](const std::vector<std::uint16_t>& stored) {
    write_safetensors(
        file,
        std::vector<TensorRef>{{.name = "tokens", .dtype = DType::uint16, .shape = {3}, .data = stored.data()},
                               {.name = "document_ends", .dtype = DType::int64, .shape = {2}, .data = ends.data()}},
        metadata);
    try {
      TokenShards({file}).verify();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::corrupt_file);
      CHECK(error.fields().path == file.string());
      return false;
    }
    return true;
  };
  CHECK(verifies(good));
  CHECK_FALSE(verifies(other));
  CHECK_FALSE(verifies(large));
  metadata["digest"] = "sha256 of someone else";
  CHECK(verifies(other));
  CHECK_FALSE(verifies(large));
  metadata.erase("largest_token");
  CHECK(verifies(large));
  CHECK(TokenShards({file}).largest_token() == 9);
}
