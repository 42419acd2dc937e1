#include "comm/tcp/proof.hpp"

#include <array>
#include <random>
#include <vector>

namespace trireme::comm {

Sha256 make_challenge() {
  std::random_device random;
  Sha256 challenge{};
  for (std::byte& one : challenge) one = static_cast<std::byte>(random());
  return challenge;
}

Sha256 proof_of(const std::string& secret, Prover who, const Challenges& challenges, std::int32_t rank, std::int32_t size) {
  std::vector<std::byte> said(challenges.of_hub.begin(), challenges.of_hub.end());
  said.insert(said.end(), challenges.of_rank.begin(), challenges.of_rank.end());
  const std::array<std::int32_t, 3> place{static_cast<std::int32_t>(who), rank, size};
  const auto bytes = std::as_bytes(std::span(place));
  said.insert(said.end(), bytes.begin(), bytes.end());
  return hmac_sha256(std::as_bytes(std::span(secret)), said);
}

bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  std::byte difference{0};
  for (std::size_t index = 0; index < a.size(); ++index) difference |= a[index] ^ b[index];
  return difference == std::byte{0};
}

}  // namespace trireme::comm
