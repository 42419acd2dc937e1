#include "trireme/data/sources/permutation.hpp"

#include <algorithm>
#include <bit>

#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"

namespace trireme::data {
namespace {

constexpr int rounds = 6;  // from four on, a Feistel network of random functions is as good as a random permutation
constexpr int min_half_bits = 4;
constexpr std::uint64_t stream_name = hash_name("trireme.data.permutation");

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch)
    : size_(static_cast<std::uint64_t>(size)), seed_(seed), stream_(stream_name + epoch) {
  require(size > 0, "a permutation needs at least one element, got {}", size);
  half_bits_ = std::max(min_half_bits, (static_cast<int>(std::bit_width(size_ - 1)) + 1) / 2);
}

// The network permutes [0, 2^(2 half_bits)), which contains [0, size_). Applies it again until the value is below size_
// (cycle walking): this is still a permutation, since each value lies on the same cycle as its position.
std::int64_t Permutation::operator()(std::int64_t position) const {
  require(position >= 0 && static_cast<std::uint64_t>(position) < size_, "the position {} does not lie in [0, {})", position,
          size_);
  auto value = static_cast<std::uint64_t>(position);
  do {
    value = shuffled(value);
  } while (value >= size_);
  return static_cast<std::int64_t>(value);
}

std::uint64_t Permutation::shuffled(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t mixed = philox(seed_, stream_, (round << 32) | right)[0] & mask;
    const std::uint64_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

}  // namespace trireme::data
