#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

using namespace trireme;
using nlohmann::json;
using tokenizers::Tokenizer;

namespace {

using Numbers = std::vector<std::int32_t>;

struct References {
  std::filesystem::path folder;
  json expected;
};

// One, or none where the references have no tokenizers.
std::vector<References> references() {
  std::vector<References> sets;
  for (const tests::Fixture& set : tests::fixtures_of_kind("tokenizers")) {
    sets.push_back({.folder = set.file.parent_path(), .expected = tests::read_json(set.file)});
  }
  return sets;
}

std::vector<std::int64_t> flat(const std::vector<Range>& offsets) {
  std::vector<std::int64_t> all;
  for (const Range& range : offsets) all.insert(all.end(), {range.begin, range.end});
  return all;
}

}  // namespace

TEST_CASE("files of tokenizers give its tokens, offsets and texts") {
  for (const References& set : references()) {
    const json& texts = set.expected.at("texts");
    int models = 0, offsets = 0;
    for (const auto& [name, expected] : set.expected.at("tokenizers").items()) {
      const Tokenizer tokenizer = tokenizers::read_tokenizer(set.folder / name);
      ++models;
      // Words are looked up many at a time, offsets found word by word.
      std::string all;
      for (const json& text : texts) all += text.get<std::string>() + "\n";
      CHECK(tokenizer.encode(all) == tokenizer.encode_with_offsets(all).tokens);
      for (std::size_t at = 0; at < texts.size(); ++at) {
        const std::string text = texts[at];
        const json& result = expected.at("results")[at];
        CAPTURE(name, at, text);
        const Numbers wanted = result.at("tokens");
        const auto encoding = tokenizer.encode_with_offsets(text);
        CHECK(encoding.tokens == wanted);
        CHECK(tokenizer.encode(text) == wanted);
        CHECK(tokenizer.decode(wanted, {.skip_special_tokens = true}) == result.at("decoded"));
        REQUIRE(encoding.offsets.size() == wanted.size());
        if (!result.contains("offsets")) continue;
        // A token without bytes has no place of its own.
        const std::vector<std::int64_t> found = flat(encoding.offsets), places = result.at("offsets");
        for (std::size_t token = 0; token < wanted.size(); ++token) {
          CAPTURE(token);
          const bool is_empty = places[2 * token] == places[2 * token + 1];
          CHECK((is_empty ? found[2 * token] == found[2 * token + 1]
                          : found[2 * token] == places[2 * token] && found[2 * token + 1] == places[2 * token + 1]));
          ++offsets;
        }
      }
      const auto pair = tokenizer.encode_pair(texts[3].get<std::string>(), texts[4].get<std::string>());
      CHECK(pair.tokens == expected.at("pair").at("tokens").get<Numbers>());
      CHECK(pair.types == expected.at("pair").at("types").get<Numbers>());
    }
    CHECK(models >= 9);
    CHECK(offsets > 1000);
  }
}

TEST_CASE("texts are the same token by token as at once") {
  for (const References& set : references()) {
    for (const auto& [name, expected] : set.expected.at("tokenizers").items()) {
      const Tokenizer tokenizer = tokenizers::read_tokenizer(set.folder / name);
      for (const bool skips : {false, true}) {
        tokenizers::TextStream stream(tokenizer, {.skip_special_tokens = skips});
        for (const auto& result : expected.at("results")) {
          const Numbers tokens = result.at("tokens");
          std::string text;
          for (const std::int32_t token : tokens) text += stream.add(token);
          text += stream.finish();
          CAPTURE(name, text);
          CHECK(text == tokenizer.decode(tokens, {.skip_special_tokens = skips}));
        }
      }
    }
  }
}

TEST_CASE("a file of tiktoken gives its tokens") {
  for (const References& set : references()) {
    const json& expected = set.expected.at("tiktoken");
    const Tokenizer tokenizer =
        tokenizers::read_tiktoken(set.folder / "cl100k.tiktoken", {.special_tokens = expected.at("special_tokens")});
    std::size_t at = 0;
    for (const std::string text : set.expected.at("texts")) {
      CAPTURE(at, text);
      const Numbers tokens = tokenizer.encode(text);
      CHECK(tokens == expected.at("tokens")[at++].get<Numbers>());
      CHECK(tokenizer.decode(tokens) == text);
    }
    CHECK(at > 40);
  }
}

TEST_CASE("special tokens in a text are text if they are not looked for") {
  for (const References& set : references()) {
    const Tokenizer tokenizer = tokenizers::read_tokenizer(set.folder / "llama3");
    const std::int32_t end = tokenizer.find("<|eot_id|>").value();
    CHECK(tokenizer.is_special(end));
    CHECK_FALSE(tokenizer.is_special(100));
    CHECK(tokenizer.spelling(end) == "<|eot_id|>");
    const tokenizers::EncodeOptions bare{.add_special_tokens = false};
    CHECK(tokenizer.encode("<|eot_id|>", bare) == Numbers{end});
    const Numbers text = tokenizer.encode("<|eot_id|>", {.add_special_tokens = false, .parse_special_tokens = false});
    CHECK(text.size() > 2);
    CHECK(tokenizer.decode(text) == "<|eot_id|>");
    CHECK(tokenizer.encode("a").front() == tokenizer.find("<|begin_of_text|>"));
    CHECK(tokenizer.encode("a", bare).size() == 1);
    CHECK_FALSE(tokenizer.find("no token").has_value());
  }
}

TEST_CASE("long words and long texts are encoded") {
  for (const References& set : references()) {
    for (const char* const name : {"gpt2", "llama2", "bert"}) {
      CAPTURE(name);
      const Tokenizer tokenizer = tokenizers::read_tokenizer(set.folder / name);
      for (const char character : {'a', ' ', '\n', '='}) {
        const std::string text(300'000, character);
        const Numbers tokens = tokenizer.encode(text);
        CHECK_FALSE(tokens.empty());
        const auto encoding = tokenizer.encode_with_offsets(text);
        CHECK(encoding.tokens == tokens);
        if (std::string_view(name) != "bert") CHECK(tokenizer.decode(tokens) == text);
      }
    }
  }
}

TEST_CASE("each character of a run that a normal form changes has its own offsets") {
  const tests::TemporaryFolder folder;
  // Of the texts, the characters of all forms, each a token.
  const auto offsets = [&](const char* form, const std::vector<std::string>& vocabulary, const std::string& text) {
    json file = json::parse(R"({"added_tokens": [], "pre_tokenizer": null, "post_processor": null, "decoder": null,
                                "model": {"type": "BPE", "vocab": {}, "merges": []}})");
    for (const std::string& each : vocabulary) file["model"]["vocab"][each] = file["model"]["vocab"].size();
    file["normalizer"]["type"] = form;
    std::ofstream(folder.path() / "tokenizer.json") << file.dump();
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (const Range& range : tokenizers::read_tokenizer(folder.path()).encode_with_offsets(text).offsets) {
      ranges.emplace_back(range.begin, range.end);
    }
    return ranges;
  };
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  const std::vector<std::string> jamo{"\u1100", "\u1102", "\u1112", "\u1161", "\u1173", "\u11ab", "\u11af", "\u11a8"};
  CHECK(offsets("NFD", jamo, "\uac00\ub098") == Ranges{{0, 3}, {0, 3}, {3, 6}, {3, 6}});
  CHECK(offsets("NFD", jamo, "\ud55c\uae00") == Ranges{{0, 3}, {0, 3}, {0, 3}, {3, 6}, {3, 6}, {3, 6}});
  CHECK(offsets("NFKD", jamo, "\uac01\u11a8") == Ranges{{0, 3}, {0, 3}, {0, 3}, {3, 6}});
  CHECK(offsets("NFKC", {"A", "B", "f", "i", "l"}, "\uff21\uff22\ufb01\ufb02") ==
        Ranges{{0, 3}, {3, 6}, {6, 9}, {6, 9}, {9, 12}, {9, 12}});
  CHECK(offsets("NFD", {"e", "\u0300", "\u0301"}, "\u00e9\u0301\u00e8") == Ranges{{0, 2}, {0, 2}, {2, 4}, {4, 6}, {4, 6}});
  CHECK(offsets("NFD", {"\u0308", "\u0301", "a"}, "\u0344a") == Ranges{{0, 2}, {0, 2}, {2, 3}});
  // A character that composes with the one before it shares its offsets.
  CHECK(offsets("NFC", {"\uac01", "\u11a8"}, "\u1100\u1161\u11a8\u11a8") == Ranges{{0, 9}, {9, 12}});
  CHECK(offsets("NFKC", {"\uac00", "\u1100"}, "\u1100\uffc2\u1100") == Ranges{{0, 6}, {6, 9}});  // a vowel of half the width
}
