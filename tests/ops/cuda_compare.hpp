#pragma once

#include "ops/compare.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

// Helper for the tests of ops on a GPU: the comparison with the CPU.
namespace trireme::ops {

template <typename T>
double bound() {
  return std::is_same_v<T, bfloat16> ? 0x1p-7 : std::is_same_v<T, float16> ? 0x1p-10 : tolerance<T>(1e-6);
}

// `slack` is for sums, which the GPU adds in another order.
template <typename T>
void require_same(const Tensor<T, Cuda>& got, const Tensor<T>& expected, double slack = 1) {
  require_close(got.template to<Cpu>(), as_doubles(expected), slack * bound<T>());
}

}  // namespace trireme::ops
