// Where words begin, their keys, and what keeps their tokens.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tokenizers/codecs/word_cache.hpp"
#include "tokenizers/codecs/word_key.hpp"
#include "tokenizers/codecs/word_table.hpp"
#include "tokenizers/text/byte_kinds.hpp"
#include "tokenizers/text/characters.hpp"
#include "tokenizers/text/utf8.hpp"
#include "tokenizers/text/word_splitter.hpp"

using namespace trireme;
using Numbers = std::vector<std::int32_t>;

TEST_CASE("words of any length up to 24 bytes have keys of their own") {
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  for (std::size_t length = 0; length <= tokenizers::WordKey::most_bytes; ++length) {
    const tokenizers::WordKey key(std::string_view(text).substr(0, length));
    CHECK(key == tokenizers::WordKey(std::string_view(text).substr(0, length)));
    for (std::size_t changed = 0; changed < length; ++changed) {
      std::string other = text.substr(0, length);
      other[changed] = '_';
      CAPTURE(length, changed);
      CHECK(key != tokenizers::WordKey(other));
    }
    if (length > 0) CHECK(key != tokenizers::WordKey(std::string_view(text).substr(0, length - 1)));
  }
  CHECK(tokenizers::WordKey(std::string_view("a\0", 2)) != tokenizers::WordKey("a"));
}

TEST_CASE("what stands behind a word does not change its key") {
  const std::string text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
  for (std::size_t length = 0; length <= tokenizers::WordKey::most_bytes; ++length) {
    const std::string_view word = std::string_view(text).substr(2, length);
    const tokenizers::WordKey key(word);
    for (const std::size_t readable : {length, std::size_t{23}, std::size_t{24}, std::size_t{50}}) {
      CAPTURE(length, readable);
      if (readable >= length) CHECK(tokenizers::WordKey(word, readable) == key);
      if (readable >= length) CHECK(tokenizers::WordKey(word, readable).hash() == key.hash());
    }
  }
}

TEST_CASE("short words have keys of their own, whatever stands behind them") {
  const std::string text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
  for (std::size_t length = 0; length <= tokenizers::ShortWord::most_bytes; ++length) {
    const std::string word = text.substr(2, length);
    const tokenizers::ShortWord key(word, length);
    CAPTURE(length);
    CHECK(tokenizers::ShortWord(std::string_view(text).substr(2, length), 50) == key);
    for (std::size_t changed = 0; changed < length; ++changed) {
      std::string other = word;
      other[changed] = '_';
      CHECK_FALSE(tokenizers::ShortWord(other, length) == key);
    }
  }
}

TEST_CASE("zeros at the end of a short word count") {
  CHECK_FALSE(tokenizers::ShortWord(std::string_view("a\0", 2), 2) == tokenizers::ShortWord("a", 1));
}

TEST_CASE("the cache tells words and models apart, and keeps the last ones") {
  tokenizers::WordCache cache;
  auto& words = cache.short_words;
  const tokenizers::ShortWord one("one", 3), two("two", 3);
  auto* const places = words.places_of(one);
  CHECK(words.find(places, one, 1) == nullptr);
  words.keep(places, one, 1, Numbers{7, 8});
  words.keep(places, one, 2, Numbers{9});
  words.keep(places, two, 1, Numbers{1, 2, 3, 4});
  const auto tokens_of = [&](const tokenizers::ShortWord& word, std::uint32_t model) {
    const auto* const entry = words.find(places, word, model);
    REQUIRE(entry != nullptr);
    REQUIRE(entry->has_tokens());
    return Numbers(entry->tokens.begin(), entry->tokens.begin() + static_cast<std::ptrdiff_t>(entry->count()));
  };
  CHECK(tokens_of(one, 1) == Numbers{7, 8});
  CHECK(tokens_of(one, 2) == Numbers{9});
  CHECK_FALSE(words.find(places, two, 1)->has_tokens());  // four are too many
  CHECK(words.find(places, two, 2) == nullptr);
  for (std::uint32_t model = 3; model < 20; ++model) {
    words.keep(places, one, model, Numbers{static_cast<std::int32_t>(model)});
    for (std::uint32_t recent = std::max(model, 6u) - 3; recent <= model; ++recent) {
      if (const auto* const entry = words.find(places, one, recent)) {
        CHECK(entry->tokens[0] == static_cast<std::int32_t>(recent));
      }
    }
    CHECK(tokens_of(one, model) == Numbers{static_cast<std::int32_t>(model)});
  }
}

TEST_CASE("kinds of bytes are told apart") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (std::size_t from = 0; from < all.size(); from += tokenizers::ByteKinds::bytes) {
    const tokenizers::ByteKinds kinds(all.data() + from);
    for (std::size_t at = 0; at < tokenizers::ByteKinds::bytes; ++at) {
      const std::size_t byte = from + at;
      CAPTURE(byte);
      const auto is_in = [at](std::uint64_t set) { return (set >> at & 1) != 0; };
      const bool is_ascii = byte < 128, is_space = byte == ' ' || (byte >= 9 && byte <= 13);
      const bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
      const bool is_number = byte >= '0' && byte <= '9';
      CHECK(is_in(kinds.beyond) == !is_ascii);
      CHECK(is_in(kinds.letters) == is_letter);
      CHECK(is_in(kinds.numbers) == is_number);
      CHECK(is_in(kinds.spaces) == is_space);
      CHECK(is_in(kinds.blanks) == (byte == ' '));
      CHECK(is_in(kinds.newlines) == (byte == '\n' || byte == '\r'));
      CHECK(is_in(kinds.quotes) == (byte == '\''));
      CHECK(is_in(kinds.controls) == (byte < ' ' || byte == 127));
      CHECK(is_in(kinds.others()) == (is_ascii && !is_letter && !is_number && !is_space));
      for (std::size_t begin = 0; begin < 20; ++begin) {
        std::string text(20, 'x');
        text[begin] = all[byte];
        CHECK(tokenizers::end_of_ascii(text, 0) == (is_ascii ? 20 : begin));
        CHECK(tokenizers::end_of_printable(text, 0) == (byte >= ' ' && byte < 127 ? 20 : begin));
      }
    }
  }
}

TEST_CASE("BERT's words are those found character by character") {
  const std::vector<std::string> pieces{" ",
                                        "a",
                                        "Word",
                                        "'",
                                        "1",
                                        "234",
                                        "\n",
                                        "\t ",
                                        "--",
                                        "\x7F",
                                        "\x1C",
                                        "\u00E9",
                                        "\u4E2D",
                                        "\u3000",
                                        "\u2014",
                                        std::string(70, 'a'),
                                        std::string(70, ' ')};
  for (const std::size_t kinds : {pieces.size(), std::size_t{11}}) {
    std::string text;
    std::uint64_t state = 7;
    for (int count = 0; count < 20'000; ++count) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += pieces[(state >> 33) % kinds];
    }
    std::vector<std::string> expected, found;
    std::string word;
    const auto end_word = [&] {
      if (!word.empty()) expected.push_back(std::exchange(word, {}));
    };
    for (std::size_t at = 0; at < text.size(); at += tokenizers::size_of_character(text[at])) {
      const char32_t character = tokenizers::character_at(text.data() + at);
      const bool is_sign = tokenizers::is_punctuation(character), is_space = tokenizers::is_white_space(character);
      if (is_sign || is_space) end_word();
      if (is_space) continue;
      word += text.substr(at, tokenizers::size_of_character(text[at]));
      if (is_sign) end_word();
    }
    end_word();
    tokenizers::SplitLikeBert().split(text, [&](const Range& place) { found.emplace_back(tokenizers::part_of(text, place)); });
    CHECK(found == expected);
  }
}

TEST_CASE("a table tells words from those that it lacks") {
  tokenizers::WordTable table(100);
  for (int word = 0; word < 100; ++word) table.add(tokenizers::WordKey(fmt::format("word {}", word)), word);
  for (int word = 0; word < 100; ++word) CHECK(table.find(tokenizers::WordKey(fmt::format("word {}", word))) == word);
  for (int word = 100; word < 1000; ++word) CHECK(table.find(tokenizers::WordKey(fmt::format("word {}", word))) == -1);
}

TEST_CASE("a table tells words of the same hash apart") {
  const tokenizers::WordKey first("aaebaaadxcibyqxw"), second("tozxajiyyigvospi");
  CHECK(first.hash() == second.hash());
  tokenizers::WordTable table(2);
  table.add(first, 7);
  CHECK(table.find(second) == -1);
  table.add(second, 8);
  CHECK(table.find(first) == 7);
  CHECK(table.find(second) == 8);
}
