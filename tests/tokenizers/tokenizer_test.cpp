#include "trireme/tokenizers/codecs/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tokenizers/codecs/added_tokens.hpp"
#include "tokenizers/codecs/merges.hpp"
#include "tokenizers/codecs/word_cache.hpp"
#include "tokenizers/codecs/word_key.hpp"
#include "tokenizers/codecs/word_table.hpp"
#include "tokenizers/text/byte_kinds.hpp"
#include "tokenizers/text/byte_level.hpp"
#include "tokenizers/text/characters.hpp"
#include "tokenizers/text/normalizer.hpp"
#include "tokenizers/text/regex_pattern.hpp"
#include "tokenizers/text/utf8.hpp"
#include "tokenizers/text/word_splitter.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using tokenizers::Tokenizer;
using Numbers = std::vector<std::int32_t>;

TEST_CASE("bytes become tokens and text again") {
  const Tokenizer tokenizer = Tokenizer::bytes();
  const std::string text("a\0\xFF", 3);
  CHECK(tokenizer.vocabulary_size() == 256);
  CHECK(tokenizer.encode(text) == Numbers{97, 0, 255});
  CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  CHECK(tokenizer.find("a") == 97);
  CHECK_FALSE(tokenizer.find("ab").has_value());
  CHECK(tokenizer.decode(Numbers{97, 256, 98}) == "ab");
  CHECK_THROWS_WITH(tokenizer.spelling(256), ContainsSubstring("256"));
  CHECK_THROWS_AS(tokenizer.decode(Numbers{-1}), Error);
  const auto pair = tokenizer.encode_pair("a", "bc");
  CHECK(pair.tokens == Numbers{97, 98, 99});
  CHECK(pair.types == Numbers{0, 1, 1});
  tokenizers::TextStream stream(tokenizer);
  CHECK(stream.add(0xFF) == "\xFF");
  CHECK(stream.finish().empty());
}

TEST_CASE("the first byte that is no UTF-8 is found") {
  const auto place = [](std::string_view text) { return tokenizers::first_invalid(text); };
  CHECK(place("") == 0);
  CHECK(place("only ASCII, and longer than eight bytes") == 39);
  CHECK(place("\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x91\x8B") == 9);
  CHECK(place("ab\xC3") == 2);
  CHECK(place("\x80") == 0);
  CHECK(place("\xC0\x80") == 0);          // longer than need be
  CHECK(place("\xE0\x80\x80") == 0);      // the same
  CHECK(place("a\xED\xA0\x80") == 1);     // half of a pair of UTF-16
  CHECK(place("\xF4\x90\x80\x80") == 0);  // beyond Unicode
  CHECK(place("12345678\xFF") == 8);
}

TEST_CASE("what is no UTF-8 is replaced, its longest parts together") {
  CHECK(tokenizers::valid("a\xFFz") == "a\xEF\xBF\xBDz");
  CHECK(tokenizers::valid("\xE4\xB8") == "\xEF\xBF\xBD");
  CHECK(tokenizers::valid("\xE4\xB8\x41") == "\xEF\xBF\xBD\x41");
  CHECK(tokenizers::valid("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(tokenizers::size_of_unfinished("abc") == 0);
  CHECK(tokenizers::size_of_unfinished("\xC3\xA9\xC3") == 1);
  CHECK(tokenizers::size_of_unfinished("a\xF0\x9F\x91") == 3);
  CHECK(tokenizers::size_of_unfinished("\xF0\x9F\x91\x8B") == 0);
  for (const char32_t character : {U'a', U'\x7F', U'\x80', U'\x7FF', U'\x800', U'\xFFFF', U'\x10000', U'\x10FFFF'}) {
    std::string text;
    tokenizers::append_character(character, text);
    CHECK(tokenizers::first_invalid(text) == text.size());
    CHECK(tokenizers::size_of_character(text[0]) == text.size());
    CHECK(tokenizers::character_at(text.data()) == character);
  }
}

TEST_CASE("GPT-2's spelling of bytes is read") {
  CHECK(tokenizers::bytes_of_spelling("\xC4\xA0world") == " world");
  CHECK(tokenizers::bytes_of_spelling("\xC4\x8A") == "\n");
  CHECK(tokenizers::bytes_of_spelling("\xC3\xBF") == "\xFF");
  CHECK(tokenizers::bytes_of_spelling("") == "");
  CHECK_FALSE(tokenizers::bytes_of_spelling("a b").has_value());
  CHECK_FALSE(tokenizers::bytes_of_spelling("\xE4\xB8\xAD").has_value());
}

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

TEST_CASE("no byte behind a text is read") {  // as the sanitizer of addresses sees it
  for (std::size_t length = 0; length <= tokenizers::WordKey::most_bytes; ++length) {
    const std::vector<char> text(length, 'x');
    const std::string_view word(text.data(), length);
    CHECK(tokenizers::WordKey(word, length) == tokenizers::WordKey(std::string(length, 'x')));
  }
  for (std::size_t length = 0; length <= 40; ++length) {
    std::vector<char> text(length + 3, 'x');
    text[2] = ' ';
    tokenizers::TracedText rewritten(std::string_view(text.data(), text.size()), 0, false);
    tokenizers::Replace(" ", "_").normalize(rewritten);
    CHECK(rewritten.text() == "xx_" + std::string(length, 'x'));
  }
}

TEST_CASE("texts are found in texts") {
  CHECK(tokenizers::next_of("abc", "ababcabc", 0) == 2);
  CHECK(tokenizers::next_of("abc", "ababcabc", 3) == 5);
  CHECK(tokenizers::next_of("abc", "ababcab", 3) == std::string::npos);
  CHECK(tokenizers::next_of("a", "", 0) == std::string::npos);
  CHECK(tokenizers::next_of("aab", "aaab", 0) == 1);
}

TEST_CASE("signs begin parts, each or the first of a run") {
  const auto parts = [](std::string_view text, bool runs) {
    tokenizers::WordSplitter splitter;
    splitter.add(tokenizers::SplitBefore{.begin = "_-", .runs = runs});
    std::vector<std::string> found;
    splitter.split(text, [&](const Range& part) { found.emplace_back(tokenizers::part_of(text, part)); });
    return found;
  };
  using Parts = std::vector<std::string>;
  CHECK(parts("a_-b_-_-c_-", false) == Parts{"a", "_-b", "_-", "_-c", "_-"});
  CHECK(parts("a_-b_-_-c_-", true) == Parts{"a", "_-b", "_-_-c", "_-"});
  CHECK(parts("_-_-a", false) == Parts{"_-", "_-a"});
  CHECK(parts("_-_-a", true) == Parts{"_-_-a"});
  CHECK(parts("a_b-", true) == Parts{"a_b-"});
  CHECK(parts("", true).empty());
}

TEST_CASE("texts are rewritten, however long their parts are") {
  // Words of 0 to 40 bytes, so that some are short, some at the text's end, and the result outgrows its first allocation.
  for (const std::string instead : {"", "_", "<>", "<=>", "<==>", "<==================>"}) {
    std::string text, expected;
    for (std::size_t length = 0; length <= 40; ++length) {
      text += " " + std::string(length, static_cast<char>('a' + length % 26));
      expected += instead + std::string(length, static_cast<char>('a' + length % 26));
      CAPTURE(instead, length);
      tokenizers::TracedText plain(text, 0, false), traced(text, 0, true);
      const tokenizers::Replace replace(" ", instead);
      replace.normalize(plain);
      replace.normalize(traced);
      CHECK(plain.text() == expected);
      CHECK(traced.text() == expected);
      const auto end = static_cast<std::int64_t>(expected.size());
      if (length > 0) CHECK(traced.source(end - 1, end).end == static_cast<std::int64_t>(text.size()));
    }
  }
}

TEST_CASE("short and long words are merged alike, the lowest rank first, the leftmost of equal ones") {
  using tokenizers::Symbol;
  tokenizers::Merges merges(4);
  merges.add(1, 1, {.rank = 1, .token = 2});  // aa
  merges.add(2, 2, {.rank = 3, .token = 3});  // aa aa
  merges.add(1, 4, {.rank = 0, .token = 5});  // ab
  merges.add(2, 1, {.rank = 0, .token = 9});
  merges.add(2, 1, {.rank = 2, .token = 6});  // aa a: the last one counts
  const auto merged = [&](const Numbers& tokens) {
    std::vector<Symbol> word;
    for (const std::int32_t token : tokens) word.push_back({.token = token, .bytes = 1});
    merges.apply(word);
    Numbers result;
    for (const Symbol& symbol : word) result.push_back(symbol.token);
    return result;
  };
  CHECK(merged({1, 1, 1}) == Numbers{6});
  CHECK(merged({1, 1, 4}) == Numbers{1, 5});
  CHECK(merged({1, 1, 1, 1}) == Numbers{3});
  CHECK(merged({4, 4}) == Numbers{4, 4});
  CHECK(merged({}).empty());
  // A short word has at most 64 symbols. Parts that no merge joins are merged as if each was alone.
  const Numbers part{1, 1, 1, 4, 1, 1, 4, 4, 1};
  const Numbers merged_part = merged(part);
  Numbers many, expected;
  for (int copy = 0; copy < 30; ++copy) {
    many.insert(many.end(), part.begin(), part.end());
    many.push_back(7);
    expected.insert(expected.end(), merged_part.begin(), merged_part.end());
    expected.push_back(7);
  }
  CHECK(merged(many) == expected);
}

TEST_CASE("added tokens are found, the longest of those that begin first") {
  tokenizers::AddedTokenFinder finder;
  for (const char* const content : {"<a>", "<a><b>", "b", "<mask>"}) {
    finder.add({.content = content, .number = 7, .is_special = content[0] == '<', .strips_left = content[1] == 'm'});
  }
  const auto split = [&](std::string_view text, bool with_special) {
    std::string parts;
    finder.split(
        text, with_special,
        [&](const Range& range) { parts += "(" + std::string(text.substr(range.begin, range.count())) + ")"; },
        [&](const Range& range, const auto&) { parts += "[" + std::string(text.substr(range.begin, range.count())) + "]"; });
    return parts;
  };
  CHECK(split("x<a><b>y<a>", true) == "(x)[<a><b>](y)[<a>]");
  CHECK(split("x<a>b", false) == "(x<a>)[b]");
  CHECK(split("to  <mask> b", true) == "(to)[  <mask>]( )[b]");
  CHECK(split("", true).empty());
  CHECK(split("<", true) == "(<)");
}

TEST_CASE("white space that an added token took along is no token again") {
  const auto found = [](std::string_view text, bool strips_left, bool strips_right) {
    tokenizers::AddedTokenFinder finder;
    finder.add({.content = " ", .strips_left = strips_left, .strips_right = strips_right});
    finder.add({.content = "X", .strips_right = true});
    std::string parts;
    finder.split(
        text, true, [&](const Range& range) { parts += "(" + std::string(text.substr(range.begin, range.count())) + ")"; },
        [&](const Range& range, const auto&) { parts += "[" + std::string(text.substr(range.begin, range.count())) + "]"; });
    return parts;
  };
  CHECK(found("a    b", true, true) == "(a)[    ](b)");
  CHECK(found("   ", true, true) == "[   ]");
  CHECK(found("a \n\n b", true, true) == "(a)[ \n\n ](b)");
  CHECK(found("a  b   c", true, true) == "(a)[  ](b)[   ](c)");
  CHECK(found("a \n\n b", true, false) == "(a)[ ][\n\n ](b)");
  CHECK(found("aX  b", true, false) == "(a)[X  ](b)");
  CHECK(found("a  b", false, false) == "(a)[ ][ ](b)");
}

TEST_CASE("regular expressions keep their meaning") {
  using tokenizers::RegexRules;
  const auto of = [](const std::string& pattern, RegexRules rules = RegexRules::oniguruma) {
    return tokenizers::pattern_for_pcre2(pattern, rules);
  };
  CHECK(of(R"('s| ?\p{L}+|(?i:x)|a(?!b))") == R"('s| ?\p{L}+|(?i:x)|a(?!b))");
  CHECK_THAT(of(R"(\s+(?!\S))"), ContainsSubstring("[\\x{9}-\\x{d}") && ContainsSubstring("(?![^\\x{9}"));
  CHECK_THAT(of(R"([^\s\p{L}])"), ContainsSubstring("[^\\x{9}-") && ContainsSubstring("\\p{L}]"));
  CHECK(of(R"([\p{Han}\P{^Lu}]+)") == R"([\p{sc:Han}\P{^Lu}]+)");
  CHECK(of("a$") == "a(?m:$)");
  CHECK(of("^a$", RegexRules::rust) == R"(\Aa\z)");
  CHECK(of(R"(\p{N}{1,3}+)", RegexRules::rust) == R"(\p{N}{1,3}+)");
  CHECK(of(R"(\p{L}+a{2})") == R"(\p{L}+a{2})");
  for (const char* const refused : {R"(\b)", R"(\h)", "[a[b]]", "[a&&b]", "(?m:a)", "(?<n>a)", R"([\S])", R"(\1)", "\\",
                                    "a{1,3}+", "(*NO_JIT)a", R"([\s-z])"}) {
    CAPTURE(refused);
    CHECK_THROWS_WITH(of(refused), ContainsSubstring("not supported") && ContainsSubstring(refused));
  }
}
