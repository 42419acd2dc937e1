#include "trireme/data/shards/token_shards.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/counted_file_system.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/data/documents/packed_rows.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/sources/joined.hpp"
#include "trireme/data/text/text_batch.hpp"
#include "trireme/files/cached_file_system.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

// A shard of documents of these lengths, whose tokens count on from `first`.
Location shard_of(const tests::TemporaryFolder& folder, const std::string& name, const std::vector<std::int64_t>& lengths,
                  std::int32_t first = 0, std::int32_t largest = 100'000) {
  std::vector<std::int64_t> ends(lengths.size());
  std::partial_sum(lengths.begin(), lengths.end(), ends.begin());
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(ends.back())), sources(lengths.size(), 3);
  std::iota(tokens.begin(), tokens.end(), first);
  write_token_shard(folder.path() / name, tokens, ends, sources, largest);
  return folder.path() / name;
}

TensorRef tensor(const std::string& name, const auto& values) {
  using T = typename std::remove_cvref_t<decltype(values)>::value_type;
  return {.name = name, .dtype = dtype_of<T>, .shape = {std::ssize(values)}, .data = values.data()};
}

// The process may open so many more files.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t count) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::open("/dev/null", O_RDONLY);
    ::close(next);
    const rlimit few{.rlim_cur = static_cast<rlim_t>(next) + count, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("token shards give back the documents that were written") {
  const tests::TemporaryFolder folder;
  for (const std::int32_t largest : {60'000, 70'000}) {  // stored in 16 and 32 bits
    const TokenShards shards({shard_of(folder, "a", {3, 1, 5}, 0, largest), shard_of(folder, "b", {2}, 50'000, largest)});
    CHECK(shards.size() == 4);
    CHECK(shards.num_tokens() == 11);
    CHECK(shards.at(0) == std::vector<std::int32_t>{0, 1, 2});
    CHECK(shards.at(1) == std::vector<std::int32_t>{3});
    CHECK(shards.at(2) == std::vector<std::int32_t>{4, 5, 6, 7, 8});
    CHECK(shards.at(3) == std::vector<std::int32_t>{50'000, 50'001});
    CHECK(shards.source_of(2) == 3);
    CHECK(shards.file_of(3).name() == "b");
    std::vector<std::int32_t> part(2);
    shards.read(2, 3, part);
    CHECK(part == std::vector<std::int32_t>{7, 8});
    CHECK_THROWS_AS(shards.read(2, 4, part), Error);
    CHECK_THROWS_AS(shards.read(2, -1, part), Error);
    CHECK_THROWS_AS(shards.at(4), Error);
    CHECK_THROWS_AS(shards.length_of(-1), Error);
    shards.verify();
    shards.verify(50'001);
    CHECK_THROWS_AS(shards.verify(50'000), Error);
    shards.check_vocabulary(50'002);
    CHECK_THROWS_AS(shards.check_vocabulary(50'001), Error);
  }
  const std::string content = TokenShards({folder.path() / "a"}).content();
  shard_of(folder, "a", {3, 1, 5}, 1);
  CHECK(TokenShards({folder.path() / "a"}).content() != content);
  shard_of(folder, "a", {4, 5}, 1);
  CHECK(TokenShards({folder.path() / "a"}).content() != content);
}

TEST_CASE("files that are no token shards are refused, and broken ones where they are read") {
  const tests::TemporaryFolder folder;
  const Location file = folder.path() / "x.safetensors";
  const SafetensorsMetadata metadata{{"format", "trireme.tokens"}};
  const std::vector<std::uint16_t> tokens{1, 2, 3};
  const auto refuses = [&](std::vector<TensorRef> tensors, const SafetensorsMetadata& said) {
    write_safetensors(file, tensors, said);
    try {
      TokenShards({file}).verify();
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::corrupt_file);
      CHECK(error.fields().path == file.string());
    }
  };
  const std::vector<std::int64_t> good{1, 3}, short_ends{1, 2}, falling{2, 1, 3}, none, empty_document{1, 1, 3},
      negative{-1, 3}, beyond{7, 3};
  const std::vector<std::int32_t> sources{1, 2}, few_sources{1}, wide{1, 2, 3};
  write_safetensors(file, std::vector{tensor("tokens", tokens), tensor("document_ends", good)}, metadata);
  TokenShards({file}).verify();
  TokenShards({file}).check_vocabulary(4);  // whose metadata do not tell the largest token
  CHECK_THROWS_AS(TokenShards({file}).check_vocabulary(3), Error);
  refuses({tensor("tokens", tokens), tensor("document_ends", good)}, {});  // no format
  refuses({tensor("tokens", tokens)}, metadata);
  refuses({tensor("document_ends", good)}, metadata);
  refuses({tensor("tokens", wide), tensor("document_ends", good)}, metadata);  // int32
  refuses({tensor("tokens", tokens), tensor("document_ends", wide)}, metadata);
  refuses({tensor("tokens", tokens), tensor("document_ends", short_ends)}, metadata);
  refuses({tensor("tokens", tokens), tensor("document_ends", falling)}, metadata);
  refuses({tensor("tokens", tokens), tensor("document_ends", none)}, metadata);
  refuses({tensor("tokens", tokens), tensor("document_ends", empty_document)}, metadata);
  refuses({tensor("tokens", tokens), tensor("document_ends", negative)}, metadata);
  refuses({tensor("tokens", tokens), tensor("document_ends", beyond)}, metadata);
  refuses({tensor("tokens", tokens), tensor("document_ends", good), tensor("document_sources", few_sources)}, metadata);
  const std::vector<std::uint32_t> large{1, 0x80000000U, 3};
  refuses({tensor("tokens", large), tensor("document_ends", good)}, metadata);
  CHECK_THROWS_AS(TokenShards({}), Error);
  CHECK_THROWS_AS(TokenShards({folder.path() / "absent"}), Error);
  const std::vector<std::int32_t> written{5, 6};
  const std::vector<std::int64_t> two{2};
  CHECK_THROWS_AS(write_token_shard(file, written, {}, {}, 10), Error);
  CHECK_THROWS_AS(write_token_shard(file, written, good, {}, 10), Error);
  CHECK_THROWS_AS(write_token_shard(file, written, two, sources, 10), Error);
  CHECK_THROWS_AS(write_token_shard(file, written, two, {}, 5), Error);
}

TEST_CASE("shards hold no descriptor, on the disk and in a cache") {
  const tests::TemporaryFolder folder;
  const auto counted = std::make_shared<tests::CountedFileSystem>();
  counted->version = "1";
  add_file_system("cached-tokens", cached_file_system(counted, {.folder = folder.path() / "cache"}));
  std::vector<Location> near, far;
  for (std::int32_t number = 0; number < 60; ++number) {
    near.push_back(shard_of(folder, fmt::format("{}", number), {2, 1}, 10 * number));
    far.emplace_back("cached-tokens:" + near.back().string());
  }
  const FewDescriptors few(24);
  for (const auto& files : {near, far}) {
    const TokenShards shards(files);
    const auto read_all = [&] {
      for (std::int64_t document = 0; document < shards.size(); ++document) {
        const auto number = static_cast<std::int32_t>(document / 2);
        CHECK(shards.at(document).front() == 10 * number + (document % 2 == 0 ? 0 : 2));
        CHECK(shards.source_of(document) == 3);
      }
    };
    read_all();
    const int requests = counted->requests();
    read_all();
    CHECK(counted->requests() == requests);
  }
}

TEST_CASE("the content of shards elsewhere is known by their digests, or by what their server says") {
  const tests::TemporaryFolder folder;
  const auto counted = std::make_shared<tests::CountedFileSystem>();
  add_file_system("counted-content", counted);
  const Location digested = shard_of(folder, "a", {3, 1, 5}), foreign = folder.path() / "b";
  const std::vector<std::uint16_t> tokens{1, 2, 3};
  const std::vector<std::int64_t> ends{1, 3};
  write_safetensors(foreign, std::vector{tensor("tokens", tokens), tensor("document_ends", ends)},
                    {{"format", "trireme.tokens"}});
  const auto far = [](const Location& file) { return Location("counted-content:" + file.string()); };
  CHECK(TokenShards({far(digested)}).content() == TokenShards({digested}).content());
  const auto content_of_version = [&](const std::string& version) {
    counted->version = version;
    const TokenShards shards({far(foreign)});
    const int before = counted->requests();
    const std::string content = shards.content();
    CHECK((counted->requests() > before) == version.empty());
    return content;
  };
  const std::string one = content_of_version("1");
  CHECK_THAT(one, ContainsSubstring("versions of 1 of them"));
  CHECK(content_of_version("1") == one);
  CHECK(content_of_version("2") != one);
  const Severity before = log_level();
  set_log_level(Severity::error);  // that a file is read is worth a line
  CHECK(content_of_version("") != one);
  set_log_level(before);
}

TEST_CASE("packed rows hold every token of every document once") {
  const tests::TemporaryFolder folder;
  std::vector<std::int64_t> lengths;
  for (std::int64_t number = 0; number < 137; ++number) lengths.push_back(1 + (number * 7919) % 40);
  const TokenShards shards({shard_of(folder, "a", lengths), shard_of(folder, "b", {9, 200, 1}, 90'000)});
  for (const std::int64_t at_once : {1, 10, 64, 4096}) {
    const PackedRows rows(shards, {.length = 32, .documents_at_once = at_once});
    std::map<std::int32_t, int> tokens;
    std::int64_t targets = 0;
    for (std::int64_t row = 0; row < rows.size(); ++row) {
      const std::vector<std::int64_t> one{row};
      const TokenBatch batch = rows.collate(one, row);
      CHECK(batch.first_sample == row);
      std::int64_t place = 0;
      for (const PackedRows::Piece& piece : rows.pieces_of(row)) {
        const std::vector<std::int32_t> document = shards.at(piece.document);
        for (std::int64_t at = 0; at < piece.count; ++at, ++place) {
          const auto of_document = static_cast<std::size_t>(piece.begin + at);
          REQUIRE(batch.tokens.data()[place] == document[of_document]);
          REQUIRE(batch.targets.data()[place] == (of_document + 1 < document.size() ? document[of_document + 1] : no_target));
          REQUIRE(batch.document_starts.data()[place] == place - at);
          ++tokens[document[of_document]];
          targets += batch.targets.data()[place] == no_target ? 0 : 1;
        }
      }
      REQUIRE(place <= 32);
      for (; place < 32; ++place) {
        REQUIRE(batch.targets.data()[place] == no_target);
        REQUIRE(batch.document_starts.data()[place] == place);
      }
    }
    CHECK(std::ssize(tokens) == shards.num_tokens());
    CHECK(targets == shards.num_tokens() - shards.size());
    CHECK(rows.num_cut_tokens() == 0);
    CHECK(rows.padding() == Approx(1 - static_cast<double>(shards.num_tokens()) / static_cast<double>(rows.size() * 32)));
    if (at_once == 4096) CHECK(rows.padding() < 0.02);
  }
  const PackedRows truncated(shards, {.length = 32, .long_documents = LongDocuments::truncated});
  std::int64_t cut = 0;
  for (std::int64_t document = 0; document < shards.size(); ++document)
    cut += std::max<std::int64_t>(0, shards.length_of(document) - 32);
  CHECK(truncated.num_cut_tokens() == cut);
  CHECK(truncated.content() != PackedRows(shards, {.length = 32}).content());
  CHECK_THROWS_AS(PackedRows(shards, {.length = 32, .long_documents = LongDocuments::refused}), Error);
  CHECK_THROWS_AS(PackedRows(shards, {.length = 0}), Error);
  CHECK_THROWS_AS(PackedRows(shards, {.documents_at_once = 0}), Error);
}

TEST_CASE("documents elsewhere are read by one request each, several at a time") {
  const tests::TemporaryFolder folder;
  const auto system = std::make_shared<tests::CountedFileSystem>(std::chrono::milliseconds(5));
  add_file_system("counted-tokens", system);
  const Location local = shard_of(folder, "a", {9, 70, 1, 12, 32, 20, 3, 33});
  const PackedRows here(TokenShards({local}), {.length = 32});
  const PackedRows rows(TokenShards({Location("counted-tokens:" + local.string())}), {.length = 32});
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows.size()));
  std::iota(all.begin(), all.end(), 0);
  int pieces = 0;
  for (const std::int64_t row : all) pieces += static_cast<int>(rows.pieces_of(row).size());
  const int before = system->requests();
  const TokenBatch batch = rows.collate(all, 0), wanted = here.collate(all, 0);
  CHECK(system->requests() == before + pieces);  // also of documents that go on in another row
  CHECK(system->most_at_once() > 1);
  CHECK(std::ranges::equal(batch.tokens.span(), wanted.tokens.span()));
  CHECK(std::ranges::equal(batch.targets.span(), wanted.targets.span()));
  CHECK(std::ranges::equal(batch.document_starts.span(), wanted.document_starts.span()));
}

TEST_CASE("a packed mixture on changing ranks gives each row once") {
  const tests::TemporaryFolder folder;
  std::vector<std::int64_t> lengths;
  for (std::int64_t number = 0; number < 300; ++number) lengths.push_back(1 + (number * 31) % 50);
  const auto packed = [&](const char* name, std::int32_t first) {
    return PackedRows(TokenShards({shard_of(folder, name, lengths, first)}), {.length = 32, .documents_at_once = 40});
  };
  const Joined<PackedRows> joined({packed("a", 0), packed("b", 10'000), packed("c", 20'000)});
  const auto tokens_of = [&](int ranks, std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t step = begin; step < end; ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        const Loader loader(
            joined, {.batch = {.batch_size = 12, .seed = 4, .index = rank, .count = ranks}, .mixture = {{0, {2, 1, 1}}}});
        const TokenBatch batch = loader.load(step);
        CHECK(batch.rows() == 12 / ranks);
        tokens.insert(tokens.end(), batch.tokens.data(), batch.tokens.data() + batch.tokens.numel());
      }
    }
    return tokens;
  };
  const auto whole = tokens_of(1, 0, 12);
  auto parts = tokens_of(2, 0, 3);
  for (const auto& more : {tokens_of(4, 3, 7), tokens_of(3, 7, 12)}) parts.insert(parts.end(), more.begin(), more.end());
  CHECK(parts == whole);
}
