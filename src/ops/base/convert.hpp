#pragma once

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/core/host_device.hpp"

// Converts between element types and the types that they are computed in, by the conversions of the types themselves, which a
// GPU has instructions for.
namespace trireme::ops {

TRIREME_HOST_DEVICE float widened(float x) { return x; }
TRIREME_HOST_DEVICE double widened(double x) { return x; }
TRIREME_HOST_DEVICE float widened(bfloat16 x) { return x; }
TRIREME_HOST_DEVICE float widened(float16 x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits()));
  return result;
#else
  return x;
#endif
}

// Rounds to the nearest, ties to even.
template <typename T>
TRIREME_HOST_DEVICE T rounded(Accumulate<T> x) {
  return static_cast<T>(x);
}
#ifdef __CUDA_ARCH__
template <>
TRIREME_HOST_DEVICE bfloat16 rounded<bfloat16>(float x) {
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bfloat16::from_bits(bits);
}
template <>
TRIREME_HOST_DEVICE float16 rounded<float16>(float x) {
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return float16::from_bits(bits);
}
#endif

}  // namespace trireme::ops
