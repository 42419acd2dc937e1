#pragma once

#include <cstddef>
#include <cstdint>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/device/isa.hpp"

namespace trireme::parallel {

inline constexpr std::size_t int8_block = 256;  // elements with one scale

inline constexpr std::size_t int8_blocks(std::size_t count) { return (count + int8_block - 1) / int8_block; }

template <typename T>
struct CastKernels {
  void (*narrow)(const float* from, float factor, T* to, std::size_t count);  // factor x from
  void (*widen)(const T* from, float factor, float* to, std::size_t count);
};

struct CodecKernels {
  CastKernels<float16> to_float16;
  CastKernels<bfloat16> to_bfloat16;

  // scales [int8_blocks(count)]: the largest magnitude of a block / 127; nan if an element is not finite.
  void (*to_int8)(const float* from, std::int8_t* codes, float* scales, std::size_t count);
  void (*add_int8)(const std::int8_t* codes, const float* scales, float* sum, std::size_t count);  // sum += decoded values
};

TRIREME_KERNEL_TABLE(CodecKernels, codec_kernels)

}  // namespace trireme::parallel
