#include "trireme/files/digest.hpp"

#include <cstddef>
#include <cstring>

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

template <typename Bits>
[[gnu::always_inline]] inline std::uint64_t digest_loop(std::uint64_t key, const std::byte* values, std::int64_t count,
                                                        std::uint64_t index) {
  std::uint64_t sum = 0;
  for (std::int64_t place = 0; place < count; ++place) {
    Bits bits;
    std::memcpy(&bits, values + static_cast<std::size_t>(place) * sizeof bits, sizeof bits);
    sum += mix64(key ^ (golden_ratio * (index + static_cast<std::uint64_t>(place) + 1)) ^ mix64(bits));
  }
  return sum;
}

#if defined(__x86_64__)
#if defined(__clang__)  // clang has no such option for a single function
#define TRIREME_WIDE_VECTORS
#else
#define TRIREME_WIDE_VECTORS ",prefer-vector-width=512"
#endif
// AVX-512 has vector products of 64-bit integers.
template <typename Bits>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl" TRIREME_WIDE_VECTORS))) std::uint64_t digest_avx512(
    std::uint64_t key, const std::byte* values, std::int64_t count, std::uint64_t index) {
  return digest_loop<Bits>(key, values, count, index);
}
#endif

template <typename Bits>
std::uint64_t digest_bits(std::string_view name, const void* values, std::int64_t count, std::int64_t first_index) {
  const auto* bytes = static_cast<const std::byte*>(values);
  const auto index = static_cast<std::uint64_t>(first_index);
#if defined(__x86_64__)
  static const bool has_avx512 = __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (has_avx512) return digest_avx512<Bits>(hash_name(name), bytes, count, index);
#endif
  return digest_loop<Bits>(hash_name(name), bytes, count, index);
}

}  // namespace

std::uint64_t digest(std::string_view name, DType dtype, const void* values, std::int64_t count, std::int64_t first_index) {
  switch (size_of(dtype)) {
    case 1: return digest_bits<std::uint8_t>(name, values, count, first_index);
    case 2: return digest_bits<std::uint16_t>(name, values, count, first_index);
    case 4: return digest_bits<std::uint32_t>(name, values, count, first_index);
    default: return digest_bits<std::uint64_t>(name, values, count, first_index);
  }
}

template <typename T>
std::uint64_t digest(std::string_view name, std::span<const T> values, std::int64_t first_index) {
  return digest(name, dtype_of<T>, values.data(), static_cast<std::int64_t>(values.size()), first_index);
}

template std::uint64_t digest(std::string_view, std::span<const float>, std::int64_t);
template std::uint64_t digest(std::string_view, std::span<const double>, std::int64_t);

}  // namespace trireme
