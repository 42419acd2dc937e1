#pragma once

#include <algorithm>
#include <span>

namespace trireme::tokenizers {

struct CharacterRange {
  char32_t first, last;
};

inline bool lies_in(std::span<const CharacterRange> ranges, char32_t character) {
  const auto after = std::ranges::upper_bound(ranges, character, {}, &CharacterRange::first);
  return after != ranges.begin() && character <= std::prev(after)->last;
}

// The classes of characters for BERT's rules, by Unicode 8; newer characters are in none of them.
bool is_other(char32_t character);        // control, format and private use, except tab, newline, carriage return
bool is_nonspacing(char32_t character);   // for example an accent
bool is_punctuation(char32_t character);  // also all ASCII symbols
bool is_white_space(char32_t character);  // by any version of Unicode

}  // namespace trireme::tokenizers
