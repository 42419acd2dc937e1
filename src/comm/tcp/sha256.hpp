#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace trireme::comm {

using Sha256 = std::array<std::byte, 32>;

Sha256 sha256(std::span<const std::byte> bytes);  // FIPS 180-4

// What only those can make of `bytes` who know the key: HMAC-SHA-256, RFC 2104.
Sha256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes);

}  // namespace trireme::comm
