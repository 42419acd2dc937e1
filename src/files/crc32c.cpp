#include "trireme/files/crc32c.hpp"

#include <array>
#include <cstring>

#include "files/crc32c_by_table.hpp"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace trireme {
namespace {

// tables[k][b]: the contribution of byte b to the checksum if k bytes follow it.
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

// Eight bytes per round (Kounavis, Berry 2005, "A systematic approach to building high performance software-based CRC
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
// The product of polynomials a and b modulo the CRC polynomial. As in a CRC, the highest bit is the coefficient of x^0.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if ((a & 0x80000000u) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return product;
}

// x^(8 bytes). Multiplying a checksum by it appends this many zero bytes.
std::uint32_t shift_by(std::size_t bytes) {
  std::uint32_t result = 0x80000000u;
  for (std::uint32_t power = 0x00800000u; bytes != 0; bytes >>= 1, power = multiply(power, power)) {
    if ((bytes & 1) != 0) result = multiply(result, power);
  }
  return result;
}

__attribute__((target("sse4.2"))) std::uint32_t crc_by_instruction(std::span<const std::byte> bytes, std::uint32_t crc) {
  // The instruction has a latency of three cycles and a throughput of one per cycle. So large inputs are computed in three
  // parts at a time, which are then joined.
  if (bytes.size() >= 16384) {
    const std::size_t part = bytes.size() / 24 * 8;
    std::uint64_t first = crc;
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t at = 0; at < part; at += 8) {
      first = _mm_crc32_u64(first, load_word(bytes.data() + at));
      second = _mm_crc32_u64(second, load_word(bytes.data() + part + at));
      third = _mm_crc32_u64(third, load_word(bytes.data() + 2 * part + at));
    }
    const std::uint32_t shift = shift_by(part);
    crc = multiply(multiply(static_cast<std::uint32_t>(first), shift) ^ static_cast<std::uint32_t>(second), shift) ^
          static_cast<std::uint32_t>(third);
    bytes = bytes.subspan(3 * part);
  }
  std::uint64_t wide = crc;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) wide = _mm_crc32_u64(wide, load_word(bytes.data()));
  crc = static_cast<std::uint32_t>(wide);
  for (const std::byte byte : bytes) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(byte));
  return crc;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before) { return ~crc_by_table(bytes, ~before); }

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~crc_by_instruction(bytes, ~before);
#endif
  return crc32c_by_table(bytes, before);
}

}  // namespace trireme
