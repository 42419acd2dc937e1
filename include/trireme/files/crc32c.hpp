#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// The checksum CRC-32C of bytes (Castagnoli's polynomial; RFC 3720, appendix B.4). `before`: that of the bytes ahead of them.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace trireme
