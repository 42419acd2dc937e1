#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/core/host_device.hpp"

namespace trireme TRIREME_EXPORT {
namespace math {

struct Words {
  std::uint32_t word0;
  std::uint32_t word1;
  std::uint32_t word2;
  std::uint32_t word3;
};

// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011): four random words for each 128-bit counter and 64-bit key. Gives the same
// numbers as core/philox.hpp, in a form in which loops can be vectorized.
TRIREME_HOST_DEVICE Words philox(std::uint64_t counter_low, std::uint64_t counter_high, std::uint64_t key) {
  auto c0 = static_cast<std::uint32_t>(counter_low);
  auto c1 = static_cast<std::uint32_t>(counter_low >> 32);
  auto c2 = static_cast<std::uint32_t>(counter_high);
  auto c3 = static_cast<std::uint32_t>(counter_high >> 32);
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  TRIREME_UNROLL(10)
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * c0;
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<std::uint32_t>(second >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(second);
    c2 = static_cast<std::uint32_t>(first >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(first);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

}  // namespace math
}  // namespace trireme
