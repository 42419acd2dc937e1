#include "ops/update/adam_8bit_kernels.hpp"

#include "ops/base/flush_denormals.hpp"
#include "ops/base/vector.hpp"
#include "ops/update/adam_8bit_body.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace trireme::ops::TRIREME_ISA {
namespace {

constexpr std::int64_t block = block_of_8bit;

// The moments of a block's elements.
template <typename T>
struct Block {
  alignas(64) T first[block];
  alignas(64) T second[block];
};

// A register of numbers, for the formulas of codes.
struct Register {
  using Float = Vector<float>;
  using Int = Vector<int>;
#if defined(__AVX512F__)
  static constexpr __mmask16 all_lanes = 0xFFFF;
#endif
  TRIREME_HOST_DEVICE static Float all(float x) { return Float{} + x; }
  TRIREME_HOST_DEVICE static Float lookup(const float (&table)[8], Int i) {
#if defined(__AVX512F__)
    const __m512 twice = _mm512_maskz_broadcast_f32x8(all_lanes, _mm256_loadu_ps(table));
    return _mm512_maskz_permutexvar_ps(all_lanes, reinterpret_cast<__m512i>(i), twice);
#elif defined(__AVX2__)
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), reinterpret_cast<__m256i>(i));
#else
    Float elements;
    for (int lane = 0; lane < lanes<float>; ++lane) elements[lane] = table[i[lane] & 7];
    return elements;
#endif
  }
  TRIREME_HOST_DEVICE static Float smaller(Float a, Float b) {
#if defined(__AVX512F__)
    return _mm512_maskz_min_ps(all_lanes, a, b);
#elif defined(__AVX2__)
    return _mm256_min_ps(a, b);
#else
    return a < b ? a : b;
#endif
  }
  TRIREME_HOST_DEVICE static Float larger(Float a, Float b) {
#if defined(__AVX512F__)
    return _mm512_maskz_max_ps(all_lanes, a, b);
#elif defined(__AVX2__)
    return _mm256_max_ps(a, b);
#else
    return a > b ? a : b;
#endif
  }
  TRIREME_HOST_DEVICE static Float where(Int condition, Float a) { return from_bits(condition & bits(a)); }
  TRIREME_HOST_DEVICE static Int one_where(Int condition) { return -condition; }
  TRIREME_HOST_DEVICE static Float to_float(Int i) { return __builtin_convertvector(i, Float); }
  TRIREME_HOST_DEVICE static Int to_int(Float x) { return __builtin_convertvector(x, Int); }
  TRIREME_HOST_DEVICE static Int bits(Float x) { return reinterpret_cast<Int>(x); }
  TRIREME_HOST_DEVICE static Float from_bits(Int i) { return reinterpret_cast<Float>(i); }
};
constexpr std::int64_t width = lanes<float>;
static_assert(block % width == 0);

// decode() converts a block's codes to numbers, encode() converts numbers to codes. Only the first `count` matter.
template <typename Codes>
void decode(std::int64_t count, const std::uint8_t* codes, float* values) {
  alignas(64) int wide[block];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) wide[i] = codes[i];
  for (std::int64_t i = count; i < block; ++i) wide[i] = 0;
  for (std::int64_t i = 0; i < block; i += width)
    store(values + i, Codes::template value<Register>(load<Register::Int>(wide + i)));
}
template <typename Codes>
void encode(std::int64_t count, float* values, std::uint8_t* codes) {
  for (std::int64_t i = count; i < block; ++i) values[i] = 0;
  alignas(64) int wide[block];
  for (std::int64_t i = 0; i < block; i += width)
    store(wide + i, Codes::template code<Register>(load<Register::Float>(values + i)));
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint8_t>(wide[i]);
}

template <typename T>
void decode(std::int64_t count, const Adam8bitPlanes<T>& planes, Block<T>& moments) {
  const float first_absmax = *planes.first_absmax;
  const float second_absmax = *planes.second_absmax;
  T* first = moments.first;
  T* second = moments.second;
  alignas(64) float values[block];
  decode<SignedCodes>(count, planes.first_codes, values);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) first[i] = static_cast<T>(values[i] * first_absmax);
  decode<UnsignedCodes>(count, planes.second_codes, values);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) second[i] = static_cast<T>(values[i] * second_absmax);
}

template <typename T>
void move(std::int64_t count, const AdamUpdate<T>& update, const T* gradient, T* weight, Block<T>& moments) {
  const AdamUpdate<T> of = update;
  T* first = moments.first;
  T* second = moments.second;
  NotKept largest;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) of(gradient[i], weight[i], first[i], second[i], largest);
}

template <typename T>
void measure(std::int64_t count, const Block<T>& moments, float* absmax) {
  const T* first = moments.first;
  const T* second = moments.second;
  float of_first = 0;
  float of_second = 0;
#pragma omp simd reduction(max : of_first, of_second)
  for (std::int64_t i = 0; i < count; ++i) {
    of_first = larger(magnitude_of(static_cast<float>(first[i])), of_first);
    of_second = larger(magnitude_of(static_cast<float>(second[i])), of_second);
  }
  absmax[0] = of_first;
  absmax[1] = of_second;
}

template <typename T>
void encode(std::int64_t count, const Block<T>& moments, const Adam8bitPlanes<T>& planes) {
  const float first_factor = relative_to(*planes.first_absmax);
  const float second_factor = relative_to(*planes.second_absmax);
  const T* first = moments.first;
  const T* second = moments.second;
  alignas(64) float values[block];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(first[i]) * first_factor;
  encode<SignedCodes>(count, values, planes.first_codes);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(second[i]) * second_factor;
  encode<UnsignedCodes>(count, values, planes.second_codes);
}

template <typename T>
void update(std::int64_t count, const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, const float* measured) {
  [[maybe_unused]] const FlushDenormals flush(outweighs_denormals(update));
  Adam8bitPlanes<T> at = planes;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t part = begin + block < count ? block : count - begin;
    Block<T> moments;
    decode(part, at, moments);
    move(part, update, at.gradient, at.weight, moments);
    float here[2];
    if (measured == nullptr) measure(part, moments, here);
    const float* absmax = measured != nullptr ? measured : here;
    *at.first_absmax = finite_absmax(absmax[0]);
    *at.second_absmax = finite_absmax(absmax[1]);
    encode(part, moments, at);
    at = {at.gradient + part,     at.weight + part,    at.first_codes + part,
          at.second_codes + part, at.first_absmax + 1, at.second_absmax + 1};
  }
}

template <typename T>
void measure(std::int64_t count, const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, float* absmax) {
  [[maybe_unused]] const FlushDenormals flush(outweighs_denormals(update));
  Block<T> moments;
  decode(count, planes, moments);
  T weights[block];
  for (std::int64_t i = 0; i < count; ++i) weights[i] = planes.weight[i];
  move(count, update, planes.gradient, weights, moments);
  measure(count, moments, absmax);
}

template <typename T>
constexpr Adam8bitKernels<T> kernels{update<T>, measure<T>};

}  // namespace

const KernelTable<Adam8bitKernels> adam_8bit_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
