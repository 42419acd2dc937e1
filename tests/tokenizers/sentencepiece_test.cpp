#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

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
    CHECK(tokenizers::read_tokenizer(folder.path()).decode(Numbers{bare.front(), 1 << 20}) ==
          tokenizers::read_tokenizer(folder.path()).decode(Numbers{bare.front()}));
    std::ofstream(folder.path() / "tokenizer.model") << "no model";
    CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path()), ContainsSubstring("sentencepiece can't read a model"));
  }
}

TEST_CASE("tokens that a folder adds to a model of sentencepiece are found") {
  for (const tests::Fixture& set : tests::fixtures_of_kind("tokenizers")) {
    const tests::TemporaryFolder folder;
    std::filesystem::copy_file(model(set, "bpe"), folder.path() / "tokenizer.model");
    const auto config = [&](const char* text) { std::ofstream(folder.path() / "tokenizer_config.json") << text; };
    const auto read_folder = [&] { return tokenizers::read_tokenizer(folder.path()); };
    config(R"({"legacy": true, "eos_token": "<|end|>"})");
    const auto pieces = read_folder().vocabulary_size();
    const Numbers word = read_folder().encode("user");
    const auto first = static_cast<std::int32_t>(pieces);
    std::ofstream(folder.path() / "added_tokens.json")
        << fmt::format(R"({{"<|start|>": {}, "<|end|>": {}}})", pieces, pieces + 1);
    const auto joined = [](Numbers numbers, const Numbers& more, std::int32_t last) {
      numbers.insert(numbers.end(), more.begin(), more.end());
      numbers.push_back(last);
      return numbers;
    };
    const Tokenizer added = read_folder();
    CHECK(added.vocabulary_size() == pieces + 2);
    CHECK(added.encode("<|start|>user<|end|>") == joined({first}, word, first + 1));
    CHECK((added.is_special(first + 1) && !added.is_special(first)));
    CHECK(added.decode(Numbers{first, first + 1}, {.skip_special_tokens = true}) == "<|start|>");
    CHECK(added.find("<|end|>") == first + 1);
    CHECK(added.encode_with_offsets("<|start|>user").offsets[0].end == 9);
    CHECK(added.encode("<|start|> user<|end|>") == added.encode("<|start|>user<|end|>"));  // one space, as before a text
    // Where an added token does not start a new word, no space is put before the following text.
    config(R"({"legacy": false})");
    const Numbers bare = read_folder().encode("<|start|>user");
    CHECK(read_folder().decode(bare) == "<|start|>user");
    CHECK(added.decode(joined({first}, word, first + 1)) == "<|start|> user<|end|>");
    CHECK(read_folder().encode("user") == word);
    // Only tokenizer_config.json counts where it has added tokens, also for pieces.
    config(R"({"legacy": true, "added_tokens_decoder": {"5": {"content": "<five>", "special": true}}})");
    CHECK(read_folder().encode("<five>") == Numbers{5});
    CHECK(read_folder().spelling(5) == "<five>");
    CHECK(read_folder().vocabulary_size() == pieces);
  }
}

TEST_CASE("what follows a special token of sentencepiece has one space, whatever else is in the folder") {
  for (const tests::Fixture& set : tests::fixtures_of_kind("tokenizers")) {
    for (const char* const kind : {"bpe", "unigram"}) {
      const tests::TemporaryFolder folder;
      std::filesystem::copy_file(model(set, kind), folder.path() / "tokenizer.model");
      // As those of Llama and Mistral: normalizer_spec.remove_extra_whitespaces is false.
      std::ofstream(folder.path() / "tokenizer.model", std::ios::app) << std::string("\x1A\x02\x20\x00", 4);
      const auto tokens = [&](const char* text) { return tokenizers::read_tokenizer(folder.path()).encode(text); };
      const auto check = [&] {
        CHECK(tokens("<s> user") == tokens("<s>user"));
        CHECK(tokens("a</s> user") == tokens("a</s>user"));
        CHECK(tokens("<s>  user") != tokens("<s> user"));
        CHECK(tokens(" user") != tokens("user"));  // as sentencepiece begins a text
      };
      check();
      for (const char* const config :
           {"{}", R"({"legacy": true})", R"({"tokenizer_class": "LlamaTokenizer", "legacy": true})"}) {
        CAPTURE(kind, config);
        std::ofstream(folder.path() / "tokenizer_config.json") << config;
        check();
      }
      std::ofstream(folder.path() / "tokenizer_config.json") << R"({"legacy": false})";
      CHECK(tokens("<s> user") != tokens("<s>user"));
    }
  }
}
