#include "ops/matmul/matmul_problem_cuda.hpp"

#include <fmt/format.h>

#include <bit>

#include "trireme/device/memory.hpp"

namespace trireme::ops::cuda {
namespace {

// A row-major matrix [rows, columns] as the column-major library sees it.
ColumnMajorMatrix transposed(std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  return {.rows = columns, .columns = rows, .leading = columns, .stride = stride};
}

std::string_view suffix_of(Gelu gelu) {
  switch (gelu) {
    case Gelu::none: return "";
    case Gelu::forward: return ", gelu";
    case Gelu::backward: break;
  }
  return ", gelu backward";
}

}  // namespace

std::string describe(const MatmulProblem& problem) {
  const MatmulShape& shape = problem.shape;
  std::string text =
      fmt::format("{}x{}x{} {}{} {}{} to {}{}{}{}, aligned {}", shape.m, shape.n, shape.k, shape.transpose_a ? 't' : 'n',
                  shape.transpose_b ? 't' : 'n', name_of(shape.operands), problem.tf32 ? " as tf32" : "", name_of(shape.result),
                  shape.accumulate ? " + old" : "", shape.bias ? " + bias" : "", suffix_of(problem.gelu), problem.alignment);
  if (problem.batch != 1) {
    text += fmt::format(", {} of strides {}, {}, {}", problem.batch, problem.stride_a, problem.stride_b, problem.stride_c);
  }
  return text;
}

std::uint32_t alignment_of(const MatmulOperands& operands) {
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  const std::uintptr_t all = bits(operands.a) | bits(operands.b) | bits(operands.bias) | bits(operands.gelu_input) |
                             bits(operands.c) | device::alignment;
  return std::uint32_t{1} << std::countr_zero(all);
}

ColumnMajorProduct column_major(const MatmulProblem& problem) {
  const MatmulShape& s = problem.shape;
  return {.transpose_first = s.transpose_b,
          .transpose_second = s.transpose_a,
          .first = s.transpose_b ? transposed(s.n, s.k, problem.stride_b) : transposed(s.k, s.n, problem.stride_b),
          .second = s.transpose_a ? transposed(s.k, s.m, problem.stride_a) : transposed(s.m, s.k, problem.stride_a),
          .result = transposed(s.m, s.n, problem.stride_c)};
}

std::int64_t result_elements(const MatmulProblem& problem) {
  return (problem.batch - 1) * problem.stride_c + problem.shape.m * problem.shape.n;
}

}  // namespace trireme::ops::cuda
