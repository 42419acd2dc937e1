#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme {

// crc32c() for processors without a CRC instruction.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace trireme
