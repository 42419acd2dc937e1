#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ops/matmul/matmul_shape.hpp"

namespace trireme::ops::cuda {

// What is applied to a product x (with its bias) before it is stored. The GELU is Activation::gelu_tanh.
enum class Gelu : std::uint8_t {
  none,
  forward,   // gelu(x); x itself goes to gelu_input
  backward,  // x * gelu'(gelu_input)
};

// A row-major product, with all that the choice of its algorithm depends on. If a has 8 bits, b is float8_e4m3.
struct MatmulProblem {
  MatmulShape shape;
  Gelu gelu = Gelu::none;
  bool tf32 = false;       // operands of float may be rounded to TF32
  std::int64_t batch = 1;  // number of products; strides from one's operand to the next's, 0: one operand for all
  std::int64_t stride_a = 0;
  std::int64_t stride_b = 0;
  std::int64_t stride_c = 0;
  std::uint32_t alignment = 1;  // of all operands, in bytes

  auto operator<=>(const MatmulProblem&) const = default;
};

// "4096x768x3072 nt bfloat16 to float32 + old". Different problems have different texts.
std::string describe(const MatmulProblem& problem);

struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;  // of the result's type
  void* gelu_input = nullptr;  // as c, of the result's type
  void* c = nullptr;
  const float* scale_a = nullptr;  // of 8-bit operands, on the GPU: each operand is multiplied by its scale
  const float* scale_b = nullptr;
};

// The largest power of two that divides every address, up to the alignment of memory blocks.
std::uint32_t alignment_of(const MatmulOperands& operands);

// The same product for a library of column-major matrices, which sees each row-major matrix as its transpose: c^T = b^T a^T, so
// the library's first operand is b.
struct ColumnMajorMatrix {
  std::int64_t rows = 0;  // as it is stored
  std::int64_t columns = 0;
  std::int64_t leading = 0;  // elements from a column to the next
  std::int64_t stride = 0;   // from one product's matrix to the next's
};
struct ColumnMajorProduct {
  bool transpose_first = false;
  bool transpose_second = false;
  ColumnMajorMatrix first;
  ColumnMajorMatrix second;
  ColumnMajorMatrix result;
};
ColumnMajorProduct column_major(const MatmulProblem& problem);

// The number of elements of the result, from the first to the last.
std::int64_t result_elements(const MatmulProblem& problem);

}  // namespace trireme::ops::cuda
