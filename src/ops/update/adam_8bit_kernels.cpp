#include "ops/update/adam_8bit_kernels.hpp"

#include "ops/update/adam_8bit_body.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

constexpr std::int64_t block = block_of_8bit;

// The moments of a block's elements.
template <typename T>
struct Block {
  alignas(64) T first[block];
  alignas(64) T second[block];
};

// Between codes and int: a loop whose vectors all have one width needs fewer registers.
void widen(std::int64_t count, const std::uint8_t* codes, int* wide) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) wide[i] = codes[i];
}
void narrow(std::int64_t count, const int* wide, std::uint8_t* codes) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint8_t>(wide[i]);
}

template <typename T>
void decode(std::int64_t count, const Adam8bitPlanes<T>& planes, Block<T>& moments) {
  const float first_absmax = *planes.first_absmax;
  const float second_absmax = *planes.second_absmax;
  T* first = moments.first;
  T* second = moments.second;
  alignas(64) int codes[block];
  widen(count, planes.first_codes, codes);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) first[i] = static_cast<T>(signed_value(codes[i]) * first_absmax);
  widen(count, planes.second_codes, codes);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) second[i] = static_cast<T>(unsigned_value(codes[i]) * second_absmax);
}

// Moves moments and weights.
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
float absmax_of(std::int64_t count, const T* moments) {
  float largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = larger(magnitude_of(static_cast<float>(moments[i])), largest);
  return largest;
}

template <typename T>
void encode(std::int64_t count, const Block<T>& moments, const Adam8bitPlanes<T>& planes) {
  const float first_factor = relative_to(*planes.first_absmax);
  const float second_factor = relative_to(*planes.second_absmax);
  const T* first = moments.first;
  const T* second = moments.second;
  alignas(64) int codes[block];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) codes[i] = signed_code(static_cast<float>(first[i]) * first_factor);
  narrow(count, codes, planes.first_codes);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) codes[i] = unsigned_code(static_cast<float>(second[i]) * second_factor);
  narrow(count, codes, planes.second_codes);
}

template <typename T>
void update(std::int64_t count, const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, const float* absmax) {
  Adam8bitPlanes<T> at = planes;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t part = begin + block < count ? block : count - begin;
    Block<T> moments;
    decode(part, at, moments);
    move(part, update, at.gradient, at.weight, moments);
    *at.first_absmax = finite_absmax(absmax != nullptr ? absmax[0] : absmax_of(part, moments.first));
    *at.second_absmax = finite_absmax(absmax != nullptr ? absmax[1] : absmax_of(part, moments.second));
    encode(part, moments, at);
    at = {at.gradient + part,     at.weight + part,    at.first_codes + part,
          at.second_codes + part, at.first_absmax + 1, at.second_absmax + 1};
  }
}

template <typename T>
void measure(std::int64_t count, const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, float* absmax) {
  Block<T> moments;
  decode(count, planes, moments);
  T weights[block];
  for (std::int64_t i = 0; i < count; ++i) weights[i] = planes.weight[i];
  move(count, update, planes.gradient, weights, moments);
  absmax[0] = absmax_of(count, moments.first);
  absmax[1] = absmax_of(count, moments.second);
}

template <typename T>
constexpr Adam8bitKernels<T> kernels{update<T>, measure<T>};

}  // namespace

const KernelTable<Adam8bitKernels> adam_8bit_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
