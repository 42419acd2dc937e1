#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "tokenizers/text/utf8.hpp"
#include "trireme/core/range.hpp"

namespace trireme::tokenizers {

// What the patterns of tokenizers/text/patterns.hpp tell apart. A newline is \r or \n; both are spaces too.
enum class CharacterClass : std::uint8_t { other, letter, number, space, newline };

struct KnownPattern {
  bool is_gpt2 = false;
  int most_digits = 3;  // of a number; GPT-2 has no limit
};

// std::nullopt for a pattern that only a regular expression can match.
std::optional<KnownPattern> known_pattern_of(std::string_view pattern);

// By the tables of PCRE2.
CharacterClass class_beyond_ascii(char32_t character);

inline constexpr std::array<CharacterClass, 128> ascii_classes = [] {
  std::array<CharacterClass, 128> classes{};
  for (std::size_t byte = 0; byte < 128; ++byte) {
    const bool is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
    if (is_letter) classes[byte] = CharacterClass::letter;
    if (byte >= '0' && byte <= '9') classes[byte] = CharacterClass::number;
    if (byte == ' ' || (byte >= 0x9 && byte <= 0xD)) classes[byte] = CharacterClass::space;
    if (byte == '\r' || byte == '\n') classes[byte] = CharacterClass::newline;
  }
  return classes;
}();

// Finds the matches of a known pattern, which follow each other without gaps, as the regular expression does.
template <bool is_gpt2>
class PatternScanner {
 public:
  PatternScanner(std::string_view text, int most_digits) : text_(text), most_digits_(most_digits) {}

  // The end of the match that begins at `at`.
  std::size_t match_at(std::size_t at) const {
    if (text_[at] == ' ' && at + 1 < text_.size() && is_ascii_letter(text_[at + 1])) return end_of_letters(at + 1);
    const Character first = character(at);
    if (first.is == CharacterClass::letter) return end_of_letters(at);
    if (text_[at] == '\'') {
      if (const std::size_t end = end_of_contraction(at)) return end;
    }
    const bool is_blank = text_[at] == ' ';
    const bool goes_on = first.end < text_.size();
    const Character second = goes_on ? character(first.end) : Character{.is = CharacterClass::newline, .end = 0};
    const bool begins_word = is_gpt2 ? is_blank : first.is != CharacterClass::number && first.is != CharacterClass::newline;
    if (begins_word && second.is == CharacterClass::letter) return end_of_letters(first.end);
    if (first.is == CharacterClass::number) return end_of_number(first.end);
    if (is_gpt2 && is_blank && second.is == CharacterClass::number) return end_of_run(second.end, CharacterClass::number);
    if (first.is == CharacterClass::other) return end_of_others(first.end);
    if (is_blank && second.is == CharacterClass::other) return end_of_others(second.end);
    return end_of_spaces(at);
  }

 private:
  struct Character {
    CharacterClass is;
    std::size_t end;
  };
  Character character(std::size_t at) const {
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 0x80) return {.is = ascii_classes[byte], .end = at + 1};
    return {.is = class_beyond_ascii(character_at(text_.data() + at)), .end = at + size_of_character(text_[at])};
  }

  static bool is_ascii_letter(char byte) {
    const auto number = static_cast<unsigned char>(byte);
    return number < 0x80 && ascii_classes[number] == CharacterClass::letter;
  }

  // Looks at 8 bytes at a time, without a branch for each.
  std::size_t end_of_letters(std::size_t at) const {
    constexpr std::uint64_t ones = 0x0101010101010101u;
    while (at + 8 <= text_.size()) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, text_.data() + at, 8);
      const std::uint64_t small = (bytes | 0x20 * ones) & 0x7F * ones;
      // The highest bit of a byte: it is an ASCII letter.
      const std::uint64_t letters = (small + (0x80 - 'a') * ones) & ~(small + (0x7F - 'z') * ones) & ~bytes & 0x80 * ones;
      if (letters != 0x80 * ones) {
        at += static_cast<std::size_t>(std::countr_one(letters | 0x7F * ones)) / 8;
        if (static_cast<unsigned char>(text_[at]) < 0x80) return at;
        break;
      }
      at += 8;
    }
    return end_of_run(at, CharacterClass::letter);
  }

  std::size_t end_of_run(std::size_t at, CharacterClass of) const {
    while (at < text_.size()) {
      const Character next = character(at);
      if (next.is != of) break;
      at = next.end;
    }
    return at;
  }

  std::size_t end_of_number(std::size_t at) const {
    if (is_gpt2) return end_of_run(at, CharacterClass::number);
    for (int digits = 1; digits < most_digits_ && at < text_.size(); ++digits) {
      const Character next = character(at);
      if (next.is != CharacterClass::number) break;
      at = next.end;
    }
    return at;
  }

  std::size_t end_of_others(std::size_t at) const {
    const std::size_t end = end_of_run(at, CharacterClass::other);
    return is_gpt2 ? end : end_of_run(end, CharacterClass::newline);
  }

  // Spaces up to the last newline among them, except by GPT-2's rules; otherwise all at the end of the text; otherwise all but
  // the last one, which belongs to the next word, if there are several.
  std::size_t end_of_spaces(std::size_t begin) const {
    std::size_t at = begin, last = begin, behind_newline = 0;
    while (at < text_.size()) {
      const Character next = character(at);
      if (next.is != CharacterClass::space && next.is != CharacterClass::newline) break;
      if (next.is == CharacterClass::newline) behind_newline = next.end;
      last = at;
      at = next.end;
    }
    if (!is_gpt2 && behind_newline > 0) return behind_newline;
    return at == text_.size() || last == begin ? at : last;
  }

  // 's, 't, 're, 've, 'm, 'll or 'd, except by GPT-2's rules in any case, for which U+017F is an s too. 0: there is none.
  std::size_t end_of_contraction(std::size_t at) const {
    const auto letter = [&](std::size_t place) {
      const char byte = place < text_.size() ? text_[place] : '\0';
      return !is_gpt2 && byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte | 0x20) : byte;
    };
    const char first = letter(at + 1), second = letter(at + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
    if (first == 'l' && second == 'l') return at + 3;
    return !is_gpt2 && text_.substr(at + 1).starts_with("\u017F") ? at + 3 : 0;
  }

  std::string_view text_;
  int most_digits_;
};

// Calls visit(Range) for each match, from left to right.
template <typename Visit>
void for_matches_of(const KnownPattern& pattern, std::string_view text, const Visit& visit) {
  const auto scan = [&](const auto& scanner) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = scanner.match_at(at);
      visit(Range{.begin = static_cast<std::int64_t>(at), .end = static_cast<std::int64_t>(end)});
      at = end;
    }
  };
  if (pattern.is_gpt2) {
    scan(PatternScanner<true>(text, pattern.most_digits));
  } else {
    scan(PatternScanner<false>(text, pattern.most_digits));
  }
}

}  // namespace trireme::tokenizers
