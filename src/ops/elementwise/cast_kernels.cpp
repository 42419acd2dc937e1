#include "ops/elementwise/cast_kernels.hpp"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace trireme::ops::TRIREME_ISA {
namespace {

void from_bfloat16(const bfloat16* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i];
}

void to_bfloat16(const float* x, bfloat16* y, std::int64_t count) {
  auto* bits = reinterpret_cast<std::uint16_t*>(y);  // GCC 12 does not vectorize loops over a class
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) bits[i] = bfloat16(x[i]).bits();
}

void from_float16(const float16* x, float* y, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
#endif
  for (; i < count; ++i) y[i] = x[i];
}

void to_float16(const float* x, float16* y, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), halves);
  }
#endif
  for (; i < count; ++i) y[i] = float16(x[i]);
}

}  // namespace

const CastKernels cast_kernels{from_bfloat16, to_bfloat16, from_float16, to_float16};

}  // namespace trireme::ops::TRIREME_ISA
