#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "comm/tcp/sha256.hpp"

namespace trireme::comm {

Sha256 make_challenge();

// The random numbers that the two ends of a connection send each other.
struct Challenges {
  Sha256 of_hub{};
  Sha256 of_rank{};
};

enum class Prover : std::uint8_t { rank, hub };

// A proof for the other end of a connection that this end knows the job's secret, without sending the secret. It is valid only
// for these random numbers, this rank and size, and this end.
Sha256 proof_of(const std::string& secret, Prover who, const Challenges& challenges, std::int32_t rank, std::int32_t size);

// Compares in a time that does not depend on where they differ.
bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace trireme::comm
