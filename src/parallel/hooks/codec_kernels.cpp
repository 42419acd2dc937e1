#include "parallel/hooks/codec_kernels.hpp"

namespace trireme::parallel::TRIREME_ISA {
namespace {

template <typename T>
void narrow(const float* from, float factor, T* to, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = T(factor * from[i]);
}

template <typename T>
void widen(const T* from, float factor, float* to, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) to[i] = factor * static_cast<float>(from[i]);
}

void block_to_int8(const float* from, std::int8_t* codes, float& scale, std::size_t count) {
  constexpr float least = 1e-30F;
  float largest = 0;
  float poison = 0;  // nan if an element is not finite
#pragma omp simd reduction(max : largest) reduction(+ : poison)
  for (std::size_t i = 0; i < count; ++i) {
    const float magnitude = from[i] < 0 ? -from[i] : from[i];
    largest = magnitude > largest ? magnitude : largest;
    poison += 0.0F * from[i];
  }
  const float inverse = largest > least ? 127 / largest : 0;
  scale = (largest > least ? largest / 127 : 0) + poison;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    float value = inverse * from[i];
    value += value < 0 ? -0.5F : 0.5F;
    value = value < 127 ? value : 127;
    value = value > -127 ? value : -127;
    codes[i] = static_cast<std::int8_t>(static_cast<int>(value));
  }
}

void to_int8(const float* from, std::int8_t* codes, float* scales, std::size_t count) {
  for (std::size_t block = 0; block * int8_block < count; ++block) {
    const std::size_t begin = block * int8_block;
    const std::size_t rest = count - begin;
    block_to_int8(from + begin, codes + begin, scales[block], rest < int8_block ? rest : int8_block);
  }
}

void add_int8(const std::int8_t* codes, const float* scales, float* sum, std::size_t count) {
  for (std::size_t block = 0; block * int8_block < count; ++block) {
    const std::size_t begin = block * int8_block;
    const std::size_t end = count - begin < int8_block ? count : begin + int8_block;
    const float scale = scales[block];
#pragma omp simd
    for (std::size_t i = begin; i < end; ++i) sum[i] += scale * static_cast<float>(codes[i]);
  }
}

}  // namespace

extern const CodecKernels codec_kernels{
    {narrow<float16>, widen<float16>}, {narrow<bfloat16>, widen<bfloat16>}, to_int8, add_int8};

}  // namespace trireme::parallel::TRIREME_ISA
