#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tokenizers/text/byte_kinds.hpp"
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

  // Whether begins_from(at) may be called and may find several matches.
  bool has_many_at(std::size_t at) const {
    return at + ByteKinds::bytes <= text_.size() && static_cast<unsigned char>(text_[at] | text_[at + 1]) < 0x80;
  }

  // Where matches begin in the 64 bytes from `at` on, if one begins there: bit i is for at + i. Only those that are certain,
  // whatever stands behind the last ASCII character of these bytes.
  std::uint64_t begins_from(std::size_t at) const {
    const ByteKinds kinds(text_.data() + at);
    std::uint64_t begins = begins_among(kinds) | 1;
    const int end = std::countr_zero(kinds.beyond);
    if (end == 0) return 1;
    // Of spaces at the end only the first is certain: the others depend on what follows.
    int certain = std::min(end, end - std::countl_one(kinds.spaces << (64 - end)) + 1);
    for (std::uint64_t quotes = kinds.quotes & begins; quotes != 0; quotes &= quotes - 1) {
      const int quote = std::countr_zero(quotes);
      if (quote + 3 >= end) {
        certain = std::min(certain, quote + 1);
        break;
      }
      const std::size_t end_of_word = end_of_contraction(at + static_cast<std::size_t>(quote));
      if (end_of_word == 0) continue;
      begins &= ~(std::uint64_t{2} << quote);
      begins |= std::uint64_t{1} << (end_of_word - at);
    }
    return begins & ~std::uint64_t{0} >> (64 - certain);
  }

 private:
  // Where matches begin, contractions apart. The first byte begins one, so that what precedes it does not matter.
  std::uint64_t begins_among(const ByteKinds& kinds) const {
    const auto behind = [](std::uint64_t set) { return set << 1; };
    const auto before = [](std::uint64_t set) { return set >> 1; };
    const std::uint64_t letters = kinds.letters, numbers = kinds.numbers, spaces = kinds.spaces, others = kinds.others();
    const std::uint64_t first_letters = letters & ~behind(letters), first_numbers = numbers & ~behind(numbers),
                        first_others = others & ~behind(others) & ~behind(kinds.blanks),
                        first_spaces = spaces & ~behind(spaces);
    if constexpr (is_gpt2) {
      // The last of several spaces begins a match too, and if it is ' ', then what follows does not.
      return ((first_letters | first_numbers) & ~behind(kinds.blanks)) | first_others | first_spaces |
             (spaces & ~before(spaces));
    } else {
      // A single sign that no ' ' precedes belongs to the letters behind it, and so does a space that is no newline.
      const std::uint64_t apart = numbers | kinds.newlines | (others & (behind(others) | behind(kinds.blanks)));
      // Newlines behind signs belong to these.
      const std::uint64_t of_signs = kinds.newlines & behind(others), more = kinds.newlines + of_signs;
      const std::uint64_t after_signs = more & ~kinds.newlines & spaces;
      // Spaces behind the last newline begin a match, and so does the last of them.
      const std::uint64_t bare = spaces & ~kinds.newlines, last = bare & ~before(spaces);
      std::uint64_t at_end = last;
      for (std::uint64_t shift = 1, through = bare; shift < 64; shift *= 2) {
        at_end |= through & at_end >> shift;
        through &= through >> shift;
      }
      return (first_letters & behind(apart)) | begins_of_numbers(first_numbers, numbers) | first_others |
             (first_spaces & ~of_signs) | after_signs | (at_end & behind(kinds.newlines)) | last;
    }
  }

  // Numbers are split after most_digits_ digits.
  std::uint64_t begins_of_numbers(std::uint64_t first, std::uint64_t numbers) const {
    if (most_digits_ == 1) return numbers;
    std::uint64_t begins = first;
    const std::uint64_t fourth = numbers & numbers << 1 & numbers << 2;
    for (std::uint64_t next = first << 3 & fourth; next != 0; next = next << 3 & fourth) begins |= next;
    return begins;
  }

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
    while (at + 8 <= text_.size()) {
      const std::uint64_t read = eight::read(text_.data() + at), ascii = read & ~eight::highest;
      const std::uint64_t letters = eight::between(ascii | 0x20 * eight::ones, 'a', 'z') & ~read;
      if (letters != eight::highest) {
        at += static_cast<std::size_t>(std::countr_one(letters | ~eight::highest)) / 8;
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
    std::size_t at = 0;
    const auto end_match = [&](std::size_t end) {
      visit(Range{.begin = static_cast<std::int64_t>(at), .end = static_cast<std::int64_t>(end)});
      at = end;
    };
    while (at < text.size()) {
      const std::size_t from = at;
      if (scanner.has_many_at(at)) {
        for (std::uint64_t begins = scanner.begins_from(at) & ~std::uint64_t{1}; begins != 0; begins &= begins - 1) {
          end_match(from + static_cast<std::size_t>(std::countr_zero(begins)));
        }
      }
      if (at == from) end_match(scanner.match_at(at));
    }
  };
  if (pattern.is_gpt2) {
    scan(PatternScanner<true>(text, pattern.most_digits));
  } else {
    scan(PatternScanner<false>(text, pattern.most_digits));
  }
}

}  // namespace trireme::tokenizers
