#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace trireme::tokenizers {

// A word of at most 24 bytes as integers: its bytes, padded with zeros, and its length.
struct WordKey {
  static constexpr std::size_t most_bytes = 24;

  WordKey() = default;  // without values

  // `readable` is the number of bytes that may be read from the begin of the word. With 24 or more, the copy has no branches.
  WordKey(std::string_view word, std::size_t readable) : bytes(word.size()) {
    if (readable < most_bytes) {
      parts = {};
      word.copy(reinterpret_cast<char*>(parts.data()), word.size());  // an empty word may have no memory
      return;
    }
    static constexpr auto ones_then_zeros = [] {
      std::array<unsigned char, 2 * most_bytes> result{};
      for (std::size_t at = 0; at < most_bytes; ++at) result[at] = 0xFF;
      return result;
    }();
    const unsigned char* const mask = ones_then_zeros.data() + most_bytes - word.size();
    const auto part = [&](std::size_t number) {
      std::uint64_t of_word = 0, of_mask = 0;
      std::memcpy(&of_word, word.data() + 8 * number, 8);
      std::memcpy(&of_mask, mask + 8 * number, 8);
      return of_word & of_mask;
    };
    parts = {part(0), part(1), part(2)};
  }
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
