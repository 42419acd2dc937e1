#include "tokenizers/text/byte_level.hpp"

#include <algorithm>
#include <array>

#include "tokenizers/text/utf8.hpp"

namespace trireme::tokenizers {
namespace {

constexpr char32_t end_of_alphabet = 0x144;

// The byte of each character below end_of_alphabet, or -1. Bytes that are visible in Latin-1 stand for themselves; the others
// are numbered from U+0100 on.
constexpr std::array<int, end_of_alphabet> alphabet() {
  std::array<int, end_of_alphabet> bytes{};
  bytes.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_shown = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    bytes[is_shown ? static_cast<char32_t>(byte) : next++] = byte;
  }
  return bytes;
}

constexpr auto bytes_of_characters = alphabet();

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string result;
  for (std::size_t at = 0; at < spelling.size(); at += size_of_character(spelling[at])) {
    const char32_t character = character_at(spelling.data() + at);
    if (character >= end_of_alphabet || bytes_of_characters[character] < 0) return {};
    result += static_cast<char>(bytes_of_characters[character]);
  }
  return result;
}

char32_t spelling_of(unsigned char byte) {
  return static_cast<char32_t>(std::ranges::find(bytes_of_characters, static_cast<int>(byte)) - bytes_of_characters.begin());
}

}  // namespace trireme::tokenizers
