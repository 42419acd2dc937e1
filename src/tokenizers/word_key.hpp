#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace trireme::tokenizers {

// A word of at most 24 bytes as numbers: its first, middle and last bytes, which overlap. With its length they make the word.
struct WordKey {
  static constexpr std::size_t most_bytes = 24;

  explicit WordKey(std::string_view word) {
    const char* const text = word.data();
    bytes = static_cast<std::uint32_t>(word.size());
    const auto eight = [text](std::size_t at) {
      std::uint64_t value = 0;
      std::memcpy(&value, text + at, 8);
      return value;
    };
    const auto four = [text](std::size_t at) {
      std::uint32_t value = 0;
      std::memcpy(&value, text + at, 4);
      return static_cast<std::uint64_t>(value);
    };
    const auto byte = [text](std::size_t at) { return static_cast<std::uint64_t>(static_cast<unsigned char>(text[at])); };
    if (bytes > 16) {
      parts = {eight(0), eight(8), eight(bytes - 8)};
    } else if (bytes >= 8) {
      parts = {eight(0), 0, eight(bytes - 8)};
    } else if (bytes >= 4) {
      parts = {four(0) | four(bytes - 4) << 32, 0, 0};
    } else if (bytes > 0) {
      parts = {byte(0) | byte(bytes / 2) << 8 | byte(bytes - 1) << 16, 0, 0};
    }
  }

  std::uint64_t hash() const {
    const std::uint64_t mixed = parts[0] ^ (parts[1] + bytes) * 0x9E3779B97F4A7C15u ^ parts[2] * 0xC2B2AE3D27D4EB4Fu;
    return (mixed ^ mixed >> 29) * 0xD6E8FEB86659FD93u;
  }

  friend bool operator==(const WordKey& a, const WordKey& b) = default;

  std::array<std::uint64_t, 3> parts{};
  std::uint32_t bytes = 0;
};

}  // namespace trireme::tokenizers
