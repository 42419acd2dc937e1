#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "comm/tcp/sha256.hpp"

namespace trireme::comm {

// How a rank shows the hub that it knows the job's secret, without telling it: its answer to a random number fits no other.
Sha256 make_challenge();
Sha256 proof_of(const std::string& secret, std::span<const std::byte> challenge, std::int32_t rank, std::int32_t size);

// In a time that does not depend on where they differ.
bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace trireme::comm
