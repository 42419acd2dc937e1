#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace trireme::tokenizers {

// The bytes of a word, of which `readable` may be read from its begin, in parts of 8 bytes, padded with zeros. If `readable` is
// at least 8 * parts, the copy has no branches.
template <std::size_t parts>
std::array<std::uint64_t, parts> padded_parts(std::string_view word, std::size_t readable) {
  std::array<std::uint64_t, parts> result{};
  if (readable < 8 * parts) {
    word.copy(reinterpret_cast<char*>(result.data()), word.size());  // an empty word may have no memory
    return result;
  }
  static constexpr auto ones_then_zeros = [] {
    std::array<unsigned char, 16 * parts> mask{};
    for (std::size_t at = 0; at < 8 * parts; ++at) mask[at] = 0xFF;
    return mask;
  }();
  const unsigned char* const mask = ones_then_zeros.data() + 8 * parts - word.size();
  for (std::size_t part = 0; part < parts; ++part) {
    std::uint64_t of_word = 0, of_mask = 0;
    std::memcpy(&of_word, word.data() + 8 * part, 8);
    std::memcpy(&of_mask, mask + 8 * part, 8);
    result[part] = of_word & of_mask;
  }
  return result;
}

// A word of at most 15 bytes as integers: its bytes, padded with zeros, and its length in the last byte.
struct ShortWord {
  static constexpr std::size_t most_bytes = 15;

  ShortWord() = default;  // without values

  ShortWord(std::string_view word, std::size_t readable) : parts(padded_parts<2>(word, readable)) {
    parts[1] |= std::uint64_t{word.size()} << 56;
  }

  std::uint64_t hash() const {
    const std::uint64_t mixed = parts[0] ^ parts[1] * 0x9E3779B97F4A7C15u;
    return (mixed ^ mixed >> 29) * 0xD6E8FEB86659FD93u;
  }

  friend bool operator==(const ShortWord& a, const ShortWord& b) {
    return ((a.parts[0] ^ b.parts[0]) | (a.parts[1] ^ b.parts[1])) == 0;
  }

  std::array<std::uint64_t, 2> parts;
};

// A word of at most 24 bytes as integers: its bytes, padded with zeros, and its length.
struct WordKey {
  static constexpr std::size_t most_bytes = 24;

  WordKey() = default;  // without values

  WordKey(std::string_view word, std::size_t readable) : parts(padded_parts<3>(word, readable)), bytes(word.size()) {}
  explicit WordKey(std::string_view word) : WordKey(word, word.size()) {}

  std::uint64_t hash() const {
    const std::uint64_t mixed = parts[0] ^ (parts[1] + bytes) * 0x9E3779B97F4A7C15u ^ parts[2] * 0xC2B2AE3D27D4EB4Fu;
    return (mixed ^ mixed >> 29) * 0xD6E8FEB86659FD93u;
  }

  // Has no branches.
  friend bool operator==(const WordKey& a, const WordKey& b) {
    const auto differ = [&](std::size_t part) { return a.parts[part] ^ b.parts[part]; };
    return (differ(0) | differ(1) | differ(2) | (a.bytes ^ b.bytes)) == 0;
  }

  std::array<std::uint64_t, 3> parts;
  std::uint64_t bytes;
};

}  // namespace trireme::tokenizers
