#include "trireme/tokenizers/codecs/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tokenizers/codecs/added_tokens.hpp"
#include "tokenizers/codecs/merges.hpp"
#include "tokenizers/codecs/word_key.hpp"
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
