#include "trireme/core/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace trireme {
namespace {

// tables[k][b]: what byte b does to the checksum when k bytes follow it.
constexpr auto tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> result{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    result[0][byte] = crc;
  }
  for (std::size_t after = 1; after < result.size(); ++after) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = result[after - 1][byte];
      result[after][byte] = (before >> 8) ^ result[0][before & 0xff];
    }
  }
  return result;
}();

std::uint64_t load_word(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

std::uint32_t add_byte(std::uint32_t crc, std::byte byte) {
  return (crc >> 8) ^ tables[0][(crc ^ static_cast<std::uint32_t>(byte)) & 0xff];
}

// Eight bytes a round (Kounavis, Berry 2005, "A systematic approach to building high performance software-based CRC
// generators").
std::uint32_t crc_by_table(std::span<const std::byte> bytes, std::uint32_t crc) {
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const std::uint64_t word = load_word(bytes.data()) ^ crc;
    crc = 0;
    for (std::size_t index = 0; index < 8; ++index) crc ^= tables[7 - index][(word >> (8 * index)) & 0xff];
  }
  for (const std::byte byte : bytes) crc = add_byte(crc, byte);
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc_by_instruction(std::span<const std::byte> bytes, std::uint32_t crc) {
  std::uint64_t wide = crc;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) wide = _mm_crc32_u64(wide, load_word(bytes.data()));
  crc = static_cast<std::uint32_t>(wide);
  for (const std::byte byte : bytes) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(byte));
  return crc;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~crc_by_instruction(bytes, ~before);
#endif
  return ~crc_by_table(bytes, ~before);
}

}  // namespace trireme
