#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/tokenizers/read_tokenizer.hpp"

using namespace trireme;
using tokenizers::Tokenizer;

namespace {

using Numbers = std::vector<std::int32_t>;

std::filesystem::path model(const tests::Fixture& set, const char* kind) {
  return set.file.parent_path() / fmt::format("sentencepiece_{}", kind) / "tokenizer.model";
}

}  // namespace

TEST_CASE("models of sentencepiece give its tokens") {
  for (const tests::Fixture& set : tests::fixtures_of_kind("tokenizers")) {
    const auto expected = tests::read_json(set.file);
    for (const char* const kind : {"bpe", "unigram"}) {
      const Tokenizer tokenizer = tokenizers::read_tokenizer(model(set, kind));
      const auto& results = expected.at("sentencepiece").at(kind);
      std::size_t at = 0;
      for (const std::string text : expected.at("texts")) {
        CAPTURE(kind, at, text);
        const auto& result = results[at++];
        const Numbers tokens = tokenizer.encode(text, {.parse_special_tokens = false});
        CHECK(tokens == result.at("tokens").get<Numbers>());
        CHECK(tokenizer.decode(tokens) == result.at("decoded"));
        const auto encoding = tokenizer.encode_with_offsets(text, {.parse_special_tokens = false});
        CHECK(encoding.tokens == tokens);
        for (const Range& range : encoding.offsets) CHECK((range.begin <= range.end && range.end <= std::ssize(text)));
      }
    }
  }
}

TEST_CASE("what stands around texts of sentencepiece says the folder") {
  for (const tests::Fixture& set : tests::fixtures_of_kind("tokenizers")) {
    const tests::TemporaryFolder folder;
    std::filesystem::copy_file(model(set, "bpe"), folder.path() / "tokenizer.model");
    const auto with = [&](const char* config) {
      std::ofstream(folder.path() / "tokenizer_config.json") << config;
      return tokenizers::read_tokenizer(folder.path()).encode("a<s>b");
    };
    const Numbers bare = with("{}");
    CHECK(std::ranges::count(bare, 1) == 1);
    CHECK(with(R"({"tokenizer_class": "LlamaTokenizer"})").front() == 1);
    const Numbers both = with(R"({"add_bos_token": true, "add_eos_token": true})");
    REQUIRE(both.size() == bare.size() + 2);
    CHECK((both.front() == 1 && both.back() == 2));
    std::ofstream(folder.path() / "tokenizer.model") << "no model";
    CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path()), ContainsSubstring("sentencepiece can't read a model"));
  }
}
