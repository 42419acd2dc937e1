#include <array>
#include <numeric>
#include <string_view>

#include "catch.hpp"
#include "trireme/core/crc32c.hpp"

using trireme::crc32c;

TEST_CASE("CRC-32C gives the values of RFC 3720") {
  std::array<std::byte, 32> bytes{};
  CHECK(crc32c(bytes) == 0x8a9136aa);
  bytes.fill(std::byte{0xff});
  CHECK(crc32c(bytes) == 0x62a8ab43);
  for (std::size_t index = 0; index < bytes.size(); ++index) bytes[index] = static_cast<std::byte>(index);
  CHECK(crc32c(bytes) == 0x46dd794e);
  CHECK(crc32c(std::as_bytes(std::span(std::string_view("123456789")))) == 0xe3069283);
  CHECK(crc32c({}) == 0);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    CHECK(crc32c(std::span(bytes).subspan(cut), crc32c(std::span(bytes).first(cut))) == 0x46dd794e);
  }
}
