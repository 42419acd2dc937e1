#pragma once

#include <cstdint>

namespace trireme::ops {

// A float32 matrix product that oneDNN is asked for.
struct MatmulKey {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  bool bias = false;  // [n]
  int threads = 0;    // filled in by run_matmul_plan

  friend auto operator<=>(const MatmulKey&, const MatmulKey&) = default;
};

// c[m, n] (+)= op(a) op(b) (+ bias). The plan for a key is made once and kept by the calling thread.
void run_matmul_plan(MatmulKey key, const float* a, const float* b, const float* bias, float* c);

}  // namespace trireme::ops
