#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "files/crc32c_by_table.hpp"
#include "trireme/files/crc32c.hpp"

using trireme::crc32c;
using trireme::crc32c_by_table;

TEST_CASE("CRC-32C gives the values of RFC 3720") {
  std::array<std::byte, 32> bytes{};
  CHECK(crc32c(bytes) == 0x8a9136aa);
  bytes.fill(std::byte{0xff});
  CHECK(crc32c(bytes) == 0x62a8ab43);
  for (std::size_t index = 0; index < bytes.size(); ++index) bytes[index] = static_cast<std::byte>(index);
  CHECK(crc32c(bytes) == 0x46dd794e);
  CHECK(crc32c(std::as_bytes(std::span(std::string_view("123456789")))) == 0xe3069283);
  CHECK(crc32c({}) == 0);
  CHECK(crc32c_by_table(bytes) == 0x46dd794e);
  CHECK(crc32c_by_table({}) == 0);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    CHECK(crc32c(std::span(bytes).subspan(cut), crc32c(std::span(bytes).first(cut))) == 0x46dd794e);
  }
}

TEST_CASE("CRC-32C of many bytes is that of its pieces") {
  std::vector<std::byte> bytes(100'000);
  std::uint32_t seed = 1;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  for (const std::size_t count : {16383u, 16384u, 16391u, 65536u, 99'999u}) {
    for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
      const auto part = std::span<const std::byte>(bytes).subspan(from, count);
      std::uint32_t by_pieces = 7;
      for (std::size_t at = 0; at < count; at += 1000) {
        by_pieces = crc32c(part.subspan(at, std::min<std::size_t>(1000, count - at)), by_pieces);
      }
      CHECK(crc32c(part, 7) == by_pieces);
      CHECK(crc32c_by_table(part, 7) == by_pieces);
    }
  }
}
