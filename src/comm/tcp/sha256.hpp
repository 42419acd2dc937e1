#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace trireme::comm {

using Sha256 = std::array<std::byte, 32>;

Sha256 sha256(std::span<const std::byte> bytes);  // FIPS 180-4

// HMAC-SHA-256 (RFC 2104): a code for `bytes` that only those who know the key can compute.
Sha256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes);

}  // namespace trireme::comm
