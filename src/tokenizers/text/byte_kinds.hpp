#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace trireme::tokenizers {

// 8 bytes at a time: the highest bit of each byte of a result tells whether the byte fulfils a condition.
namespace eight {

inline constexpr std::uint64_t ones = 0x0101010101010101u;
inline constexpr std::uint64_t highest = 0x80 * ones;

inline std::uint64_t read(const char* text) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, text, 8);
  return bytes;
}

// `bytes` are ASCII; so are `first` and `last`.
inline std::uint64_t between(std::uint64_t bytes, unsigned char first, unsigned char last) {
  return (bytes + (0x80u - first) * ones) & ~(bytes + (0x7Fu - last) * ones) & highest;
}

// The highest bits as 8 bits.
inline std::uint64_t packed(std::uint64_t highest_bits) { return (highest_bits >> 7) * 0x0102040810204080u >> 56; }

}  // namespace eight

// The first place from `at` on of a byte beyond ASCII, or the size of the text.
inline std::size_t end_of_ascii(std::string_view text, std::size_t at) {
  while (at + 8 <= text.size() && (eight::read(text.data() + at) & eight::highest) == 0) at += 8;
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

// The first place from `at` on of a byte that is none of the printable ASCII characters, or the size of the text.
inline std::size_t end_of_printable(std::string_view text, std::size_t at) {
  while (at + 8 <= text.size()) {
    const std::uint64_t read = eight::read(text.data() + at);
    if ((eight::between(read & ~eight::highest, ' ', '~') & ~read) != eight::highest) break;
    at += 8;
  }
  while (at < text.size() && text[at] >= ' ' && text[at] <= '~') ++at;
  return at;
}

// 16 bytes at a time.
typedef unsigned char Bytes16 __attribute__((vector_size(16)));
typedef signed char Conditions16 __attribute__((vector_size(16)));  // -1 where a condition is fulfilled, otherwise 0

inline Conditions16 lie_between(Bytes16 bytes, unsigned char first, unsigned char last) {
  return (bytes - first) <= static_cast<unsigned char>(last - first);
}

// The highest bits of 16 bytes as 16 bits.
inline std::uint64_t highest_bits(Bytes16 bytes) {
#ifdef __SSE2__
  return static_cast<unsigned>(_mm_movemask_epi8(reinterpret_cast<__m128i>(bytes)));
#else
  std::uint64_t halves[2];
  std::memcpy(halves, &bytes, 16);
  return eight::packed(halves[0] & eight::highest) | eight::packed(halves[1] & eight::highest) << 8;
#endif
}

// What each of 64 bytes is. In every set, bit i stands for byte i; all but `beyond` have ASCII characters alone.
struct ByteKinds {
  static constexpr std::size_t bytes = 64;

  // Inline, so that sets that nobody reads are not computed.
  [[gnu::always_inline]] explicit ByteKinds(const char* text) {
    for (std::size_t from = 0; from < bytes; from += 16) {
      Bytes16 read;
      std::memcpy(&read, text + from, 16);
      const auto put = [from](std::uint64_t& set, Conditions16 those) {
        set |= highest_bits(reinterpret_cast<Bytes16>(those)) << from;
      };
      put(beyond, reinterpret_cast<Conditions16>(read));
      put(letters, lie_between(read | 0x20, 'a', 'z'));
      put(numbers, lie_between(read, '0', '9'));
      put(blanks, read == ' ');
      put(spaces, lie_between(read, '\t', '\r') | (read == ' '));
      put(newlines, (read == '\n') | (read == '\r'));
      put(quotes, read == '\'');
      put(controls, (read < ' ') | (read == 0x7F));
    }
  }

  // Neither letters nor numbers nor spaces.
  std::uint64_t others() const { return ~(letters | numbers | spaces | beyond); }

  std::uint64_t letters = 0, numbers = 0;
  std::uint64_t spaces = 0;    // also \t, \n, \v, \f and \r
  std::uint64_t blanks = 0;    // ' '
  std::uint64_t newlines = 0;  // \n and \r
  std::uint64_t quotes = 0;    // '
  std::uint64_t controls = 0;  // among them those of `spaces` but ' '
  std::uint64_t beyond = 0;    // not ASCII
};

}  // namespace trireme::tokenizers
