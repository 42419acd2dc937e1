#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// The CRC-32C checksum of bytes (Castagnoli polynomial; RFC 3720, appendix B.4). To continue a checksum, pass the checksum of
// the preceding bytes as `before`.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace trireme
