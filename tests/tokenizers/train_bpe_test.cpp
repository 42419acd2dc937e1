#include "trireme/tokenizers/training/train_bpe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "tokenizers/text/regex.hpp"
#include "tokenizers/text/utf8.hpp"
#include "tokenizers/training/learn_merges.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using tokenizers::train_bpe;
using tokenizers::TrainedBpe;
using Texts = std::vector<std::string>;

namespace {

// By their spellings.
Texts merges_of(const TrainedBpe& trained) {
  Texts merges;
  for (const auto& [left, right] : trained.merges) {
    merges.push_back(trained.tokens[static_cast<std::size_t>(left)] + "+" + trained.tokens[static_cast<std::size_t>(right)]);
  }
  return merges;
}

Location written(const tests::TemporaryFolder& folder, const std::string& name, const std::string& content) {
  std::ofstream(folder.path() / name, std::ios::binary) << content;
  return folder.path() / name;
}

// Lines with a few words of many.
std::string many_lines(int count) {
  std::string text;
  for (int line = 0; line < count; ++line) {
    text +=
        fmt::format("line {} of the {} things that number{} has, word{}\n", line, line % 7, line * 37 % 1001, line * 11 % 513);
  }
  return text;
}

}  // namespace

TEST_CASE("the most frequent pair is merged first, of equal ones that of the lower numbers") {
  const Texts texts{"low low low lower lowest", "", "newer newer"};
  const TrainedBpe trained = train_bpe(texts, {.vocabulary_size = 263, .special_tokens = {"<pad>"}});
  CHECK(merges_of(trained) == Texts{"l+o", "lo+w", "\u0120+low", "e+r", "e+w", "n+ew"});
  CHECK(trained.tokens.size() == 263);
  CHECK(trained.tokens.front() == "<pad>");
  CHECK(trained.tokens[1] == "!");
  CHECK(trained.tokens.back() == "new");
  CHECK(trained.texts == 3);
  CHECK(trained.words == 7);
  CHECK(trained.distinct_words == 6);
  CHECK(trained.bytes == 35);
}

TEST_CASE("training ends where there is nothing to merge") {
  CHECK(train_bpe(Texts{}).tokens.size() == 256);
  CHECK(train_bpe(Texts{"", "a", "\n"}).merges.empty());
  CHECK(merges_of(train_bpe(Texts{"abc abd"}, {.min_frequency = 2})) == Texts{"a+b"});
  CHECK(merges_of(train_bpe(Texts{std::string("\0\0\0\0 x\0\0", 8)}, {.min_frequency = 2})).size() == 1);
}

TEST_CASE("texts that are no UTF-8 are an error or skipped") {
  const Texts texts{"good",
                    "b\xFF"
                    "d",
                    "good"};
  CHECK_THROWS_WITH(train_bpe(texts), ContainsSubstring("text 1 is no UTF-8: byte 1 of 3 is 0xFF"));
  const TrainedBpe trained = train_bpe(texts, {.skip_invalid = true});
  CHECK(trained.texts == 3);
  CHECK(trained.skipped_texts == 1);
  CHECK(trained.bytes == 8);

  const tests::TemporaryFolder folder;
  const Location file = written(folder, "a.txt", many_lines(60'000) + "\xC3(\n" + many_lines(60'000) + "\xC3");
  for (const int threads : {1, 3}) {
    CHECK_THROWS_WITH(train_bpe(tokenizers::TextFiles{.files = {file}}, {.threads = threads}),
                      ContainsSubstring("line 60001 is no UTF-8: byte 0 of 3 is 0xC3") && ContainsSubstring("a.txt"));
  }
}

TEST_CASE("files give the same for any number of threads") {
  const tests::TemporaryFolder folder;
  const std::string text = many_lines(70'000);
  const tokenizers::TextFiles files{
      .files = {written(folder, "a.txt", text), written(folder, "empty.txt", ""), written(folder, "b.txt", "no newline")}};
  const TrainedBpe one = train_bpe(files, {.vocabulary_size = 700});
  CHECK(one.texts == 70'001);
  CHECK(one.bytes == std::ssize(text) + 10);
  for (const int threads : {2, 5}) {
    const TrainedBpe several = train_bpe(files, {.vocabulary_size = 700, .threads = threads});
    CHECK(several.tokenizer_json() == one.tokenizer_json());
    CHECK(several.words == one.words);
    CHECK(several.distinct_words == one.distinct_words);
  }
}

TEST_CASE("a line may be longer than what is read at once, and words may span lines of whole files") {
  const tests::TemporaryFolder folder;
  std::string line;
  while (line.size() < 3 << 20) line += "one huge line ";
  const Location file = written(folder, "a.txt", "first\n" + line + "\n\nlast\n\n\n");
  const TrainedBpe trained = train_bpe(tokenizers::TextFiles{.files = {file}}, {.vocabulary_size = 300});
  CHECK(trained.texts == 6);
  CHECK(trained.bytes == static_cast<std::int64_t>(std::filesystem::file_size(file)));
  CHECK(trained.tokens[256] == "ne");
  const auto has_newlines = [](const TrainedBpe& one) {
    const Texts merges = merges_of(one);
    return std::ranges::find(merges, "\u010A+\u010A") != merges.end();
  };
  CHECK_FALSE(has_newlines(trained));
  CHECK(has_newlines(train_bpe(tokenizers::TextFiles{.files = {file}, .whole = true}, {.vocabulary_size = 300})));
  // One word of a million letters.
  const TrainedBpe word = train_bpe(Texts{std::string(1'000'000, 'a')}, {.min_frequency = 2});
  CHECK(word.tokens.back().size() == 1 << 19);
}

TEST_CASE("JSON lines have their text in a field") {
  const tests::TemporaryFolder folder;
  const Location file = written(folder, "a.jsonl", "{\"text\": \"ab\\nab\", \"n\": 1}\n\n{\"text\": \"ab\"}");
  const tokenizers::TextFiles files{.files = {file}, .json_field = "text"};
  const TrainedBpe trained = train_bpe(files);
  CHECK(trained.texts == 2);
  CHECK(trained.bytes == 7);
  CHECK(merges_of(trained).front() == "a+b");
  const auto refusal = [&](const std::string& line) {
    written(folder, "a.jsonl", "{\"text\": \"\"}\n" + line);
    return [&] { train_bpe(files); };
  };
  CHECK_THROWS_WITH(refusal("{\"text\": 3}")(), ContainsSubstring("line 2 is no JSON object with a text \"text\""));
  CHECK_THROWS_WITH(refusal("[")(), ContainsSubstring("line 2 is no JSON object") && ContainsSubstring("a.jsonl"));
  CHECK_THROWS_WITH(train_bpe(tokenizers::TextFiles{.files = {file}, .json_field = "text", .whole = true}),
                    ContainsSubstring("leave out"));
  CHECK_THROWS_WITH(train_bpe(tokenizers::TextFiles{}), ContainsSubstring("no files"));
  CHECK_THROWS_WITH(train_bpe(tokenizers::TextFiles{.files = {Location("/nowhere/a")}}), ContainsSubstring("/nowhere/a"));
}

TEST_CASE("options of training are checked") {
  const Texts texts{"a"};
  CHECK_THROWS_WITH(train_bpe(texts, {.vocabulary_size = 255}), ContainsSubstring("a vocabulary of 255 tokens"));
  CHECK_THROWS_WITH(train_bpe(texts, {.vocabulary_size = 256, .special_tokens = {"<s>"}}), ContainsSubstring("must have 257"));
  CHECK_THROWS_WITH(train_bpe(texts, {.vocabulary_size = std::int64_t{1} << 40}), ContainsSubstring("16777216"));
  CHECK_THROWS_WITH(train_bpe(texts, {.special_tokens = {""}}), ContainsSubstring("is empty"));
  CHECK_THROWS_WITH(train_bpe(texts, {.special_tokens = {"<s>", "</s>", "<s>"}}), ContainsSubstring("\"<s>\" is there twice"));
  CHECK_THROWS_WITH(train_bpe(texts, {.pattern = "("}), ContainsSubstring("regular expression"));
  CHECK_THROWS_WITH(train_bpe(texts, {.threads = 0}), ContainsSubstring("0 threads"));
  CHECK_THROWS_WITH(train_bpe([]() -> std::optional<std::string> { throw Error({.message = "the texts are gone"}); }),
                    ContainsSubstring("the texts are gone"));
}

TEST_CASE("counts have 64 bits") {
  tokenizers::SharedWordCounts words;
  tokenizers::WordCounts some;
  const std::int64_t many = std::int64_t{3} << 40;
  const auto add = [&](const std::string& word, std::int64_t count) {
    some.add(word, tokenizers::hash_of_word(word, word.size()), count);
  };
  add("ab", many);
  add("cd", many + 1);
  add("a word that is longer than a key of words", 5);
  words.add(some);
  words.add(some);
  CHECK(words.size() == 3);
  const auto learnt = tokenizers::learn_merges(words, {.vocabulary_size = 258});
  CHECK(learnt.tokens.text(256) == "cd");
  CHECK(learnt.tokens.text(257) == "ab");
}

TEST_CASE("known patterns match what their regular expressions match") {
  // Characters that the patterns tell apart, and then all characters.
  const Texts pieces{" ",          " ",       "  ",
                     "\n",         "\r",      "\t",
                     "a",          "Zz",      "s",
                     "S",          "'",       "'s",
                     "'RE",        "'ll",     "'l",
                     "'v",         "'\u017F", "1",
                     "234",        "!",       "\u3000",
                     "\u00A0",     "\u0085",  "\u2028",
                     "\u180E",     "\u00E9",  "e\u0301",
                     "\u0660",     "\u216B",  "\u4E2D",
                     "\U0001F44B", "\u200B",  std::string(1, '\0'),
                     "\x7F",       "\x1C",    "_"};
  // ASCII characters are looked at many at once.
  Texts ascii{"word",
              " and",
              "...",
              "x's",
              std::string(70, 'a'),
              std::string(70, ' '),
              std::string(70, '\n'),
              std::string(70, '.'),
              std::string(70, '1')};
  std::ranges::copy_if(pieces, std::back_inserter(ascii), [](const std::string& piece) {
    return std::ranges::all_of(piece, [](char byte) { return (byte & 0x80) == 0; });
  });
  std::string text;
  std::uint64_t state = 7;
  const auto add_any = [&](const Texts& of) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += of[(state >> 33) % of.size()];
  };
  for (int count = 0; count < 60'000; ++count) add_any(pieces);
  for (int count = 0; count < 60'000; ++count) add_any(ascii);
  for (char32_t character = 0; character < 0x110000; ++character) {
    if (character >= 0xD800 && character <= 0xDFFF) continue;
    tokenizers::append_character(character, text);
    if (character % 3 == 0) text += pieces[character % pieces.size()];
  }
  for (const std::string pattern : {tokenizers::patterns::gpt2, tokenizers::patterns::cl100k, tokenizers::patterns::qwen2}) {
    CAPTURE(pattern);
    REQUIRE(tokenizers::known_pattern_of(pattern).has_value());
    const auto ends = [](const std::string& of, std::string_view in) {
      std::vector<std::int64_t> found;
      tokenizers::Regex(of, tokenizers::RegexRules::oniguruma).for_matches(in, [&](const Range& match) {
        found.push_back(match.begin);
        found.push_back(match.end);
      });
      return found;
    };
    CHECK(ends(pattern, text) == ends("(?:" + pattern + ")", text));
    // Every end of a text.
    for (std::size_t size = 0; size < 3000; ++size) {
      const std::string_view part = std::string_view(text).substr(0, size);
      if (tokenizers::first_invalid(part) < size) continue;
      const auto last = [&](const std::string& of) {
        return ends(of, part.substr(part.size() - std::min<std::size_t>(size, 9)));
      };
      if (tokenizers::first_invalid(part.substr(size - std::min<std::size_t>(size, 9))) < 9) continue;
      REQUIRE(last(pattern) == last("(?:" + pattern + ")"));
    }
  }
}
