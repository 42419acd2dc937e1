#include "trireme/core/digest.hpp"

#include <bit>
#include <type_traits>

#include "trireme/core/philox.hpp"

namespace trireme {
namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which every input bit moves every output bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15ULL;

}  // namespace

template <typename T>
std::uint64_t digest(std::string_view name, std::span<const T> values, std::int64_t first_index) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  const std::uint64_t key = hash_name(name);
  std::uint64_t sum = 0;
  std::uint64_t index = static_cast<std::uint64_t>(first_index);
  for (const T value : values) {
    ++index;
    sum += mix64(key ^ (golden_ratio * index) ^ mix64(std::bit_cast<Bits>(value)));
  }
  return sum;
}

template std::uint64_t digest(std::string_view, std::span<const float>, std::int64_t);
template std::uint64_t digest(std::string_view, std::span<const double>, std::int64_t);

}  // namespace trireme
