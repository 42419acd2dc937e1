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

// What BERT's rules ask of a character, as Unicode 8 has it: what came later is none of these.
bool is_other(char32_t character);        // control, format and private use, but for tab, newline and carriage return
bool is_nonspacing(char32_t character);   // an accent, say
bool is_punctuation(char32_t character);  // all signs of ASCII too
bool is_white_space(char32_t character);  // of any version of Unicode

}  // namespace trireme::tokenizers
