#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "trireme/core/range.hpp"

namespace trireme::tokenizers {

// The place of the first byte that is not valid UTF-8, or the size of the text.
std::size_t first_invalid(std::string_view text);

// The size in bytes of the character that begins with `first`, in valid UTF-8.
inline std::size_t size_of_character(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The character that begins at `text`, in valid UTF-8.
inline char32_t character_at(const char* text) {
  const auto byte = [text](int at) { return static_cast<char32_t>(static_cast<unsigned char>(text[at])); };
  const auto rest = [&byte](int at) { return byte(at) & 0x3F; };
  switch (size_of_character(text[0])) {
    case 1: return byte(0);
    case 2: return (byte(0) & 0x1F) << 6 | rest(1);
    case 3: return (byte(0) & 0x0F) << 12 | rest(1) << 6 | rest(2);
    default: return (byte(0) & 0x07) << 18 | rest(1) << 12 | rest(2) << 6 | rest(3);
  }
}

void append_character(char32_t character, std::string& to);

// Replaces each truncated character and each invalid byte by U+FFFD.
std::string valid(std::string_view text);

inline std::string_view part_of(std::string_view text, const Range& place) {
  return text.substr(static_cast<std::size_t>(place.begin), static_cast<std::size_t>(place.count()));
}

// The first place of a non-empty text from `from` on, or npos. Faster than find() for short texts, which calls memcmp().
inline std::size_t next_of(std::string_view wanted, std::string_view text, std::size_t from) {
  while (true) {
    const std::size_t at = text.find(wanted[0], from);
    if (at == std::string_view::npos || text.size() - at < wanted.size()) return std::string_view::npos;
    std::size_t same = 1;
    while (same < wanted.size() && text[at + same] == wanted[same]) ++same;
    if (same == wanted.size()) return at;
    from = at + 1;
  }
}

// Widens a place in valid UTF-8 to whole characters.
Range widened(Range place, std::string_view text);

// A text for messages, with unprintable bytes as \x00.
std::string shown(std::string_view text);

// The number of bytes at the end that may be the begin of a character.
std::size_t size_of_unfinished(std::string_view text);

}  // namespace trireme::tokenizers
