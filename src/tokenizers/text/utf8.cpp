#include "tokenizers/text/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace trireme::tokenizers {
namespace {

// The length of a UTF-8 character by its first byte, and the range of its second byte: Unicode's table 3-7.
struct Sequence {
  std::size_t bytes = 0;  // 0: the byte begins no character
  unsigned char least_second = 0x80;
  unsigned char largest_second = 0xBF;
};

Sequence sequence_of(unsigned char first) {
  if (first < 0x80) return {.bytes = 1};
  if (first < 0xC2 || first > 0xF4) return {};
  if (first < 0xE0) return {.bytes = 2};
  if (first == 0xE0) return {.bytes = 3, .least_second = 0xA0};
  if (first == 0xED) return {.bytes = 3, .largest_second = 0x9F};
  if (first < 0xF0) return {.bytes = 3};
  if (first == 0xF0) return {.bytes = 4, .least_second = 0x90};
  if (first == 0xF4) return {.bytes = 4, .largest_second = 0x8F};
  return {.bytes = 4};
}

struct Prefix {
  std::size_t bytes;  // how many bytes belong together, at least 1
  bool is_whole;      // they are a whole character
  bool is_cut;        // the text ends inside the character
};

Prefix prefix_of(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const Sequence sequence = sequence_of(byte(0));
  if (sequence.bytes == 0) return {.bytes = 1, .is_whole = false, .is_cut = false};
  for (std::size_t at = 1; at < sequence.bytes; ++at) {
    if (at == text.size()) return {.bytes = at, .is_whole = false, .is_cut = true};
    const unsigned char least = at == 1 ? sequence.least_second : 0x80, largest = at == 1 ? sequence.largest_second : 0xBF;
    if (byte(at) < least || byte(at) > largest) return {.bytes = at, .is_whole = false, .is_cut = false};
  }
  return {.bytes = sequence.bytes, .is_whole = true, .is_cut = false};
}

}  // namespace

std::size_t first_invalid(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (at + 8 <= text.size()) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const Prefix prefix = prefix_of(text.substr(at));
    if (!prefix.is_whole) return at;
    at += prefix.bytes;
  }
  return at;
}

void append_character(char32_t character, std::string& to) {
  const auto byte = [&](char32_t value) { to += static_cast<char>(static_cast<unsigned char>(value)); };
  if (character < 0x80) {
    byte(character);
  } else if (character < 0x800) {
    byte(0xC0 | character >> 6);
    byte(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    byte(0xE0 | character >> 12);
    byte(0x80 | (character >> 6 & 0x3F));
    byte(0x80 | (character & 0x3F));
  } else {
    byte(0xF0 | character >> 18);
    byte(0x80 | (character >> 12 & 0x3F));
    byte(0x80 | (character >> 6 & 0x3F));
    byte(0x80 | (character & 0x3F));
  }
}

std::string valid(std::string_view text) {
  std::string result;
  while (true) {
    const std::size_t whole = first_invalid(text);
    result += text.substr(0, whole);
    if (whole == text.size()) return result;
    text.remove_prefix(whole);
    result += "\xEF\xBF\xBD";
    text.remove_prefix(prefix_of(text).bytes);
  }
}

Range widened(Range place, std::string_view text) {
  const auto continues = [text](std::int64_t at) {
    return at < static_cast<std::int64_t>(text.size()) &&
           (static_cast<unsigned char>(text[static_cast<std::size_t>(at)]) & 0xC0) == 0x80;
  };
  if (place.begin == place.end) return place;
  while (continues(place.begin)) --place.begin;
  while (continues(place.end)) ++place.end;
  return place;
}

std::string shown(std::string_view text) {
  const auto is_control = [](char character) { return static_cast<unsigned char>(character) < ' ' || character == 0x7F; };
  if (first_invalid(text) == text.size() && std::ranges::none_of(text, is_control)) return std::string(text);
  std::string result;
  for (const char character : text) {
    if (is_control(character) || static_cast<unsigned char>(character) >= 0x80) {
      fmt::format_to(std::back_inserter(result), "\\x{:02X}", static_cast<unsigned char>(character));
    } else {
      result += character;
    }
  }
  return result;
}

std::size_t size_of_unfinished(std::string_view text) {
  for (std::size_t bytes = std::min<std::size_t>(3, text.size()); bytes > 0; --bytes) {
    if (prefix_of(text.substr(text.size() - bytes)).is_cut) return bytes;
  }
  return 0;
}

}  // namespace trireme::tokenizers
