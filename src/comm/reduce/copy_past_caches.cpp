#include "comm/reduce/copy_past_caches.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace trireme::comm {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t least_bytes = std::size_t{16} << 10;  // for fewer bytes the fence costs more than it saves

}  // namespace

void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  if (bytes >= least_bytes) {
    const std::size_t head = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
    std::memcpy(to, from, head);
    std::size_t done = head;
    for (; done + line <= bytes; done += line) {
      const auto* source = reinterpret_cast<const __m128i*>(from + done);
      auto* target = reinterpret_cast<__m128i*>(to + done);
      const __m128i a = _mm_loadu_si128(source);
      const __m128i b = _mm_loadu_si128(source + 1);
      const __m128i c = _mm_loadu_si128(source + 2);
      const __m128i d = _mm_loadu_si128(source + 3);
      _mm_stream_si128(target, a);
      _mm_stream_si128(target + 1, b);
      _mm_stream_si128(target + 2, c);
      _mm_stream_si128(target + 3, d);
    }
    _mm_sfence();  // orders these stores before the flag that announces them
    to += done;
    from += done;
    bytes -= done;
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace trireme::comm
