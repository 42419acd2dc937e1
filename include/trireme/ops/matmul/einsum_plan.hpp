#pragma once

#include <string_view>
#include <vector>

#include "trireme/core/dims.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"

// The steps of einsum(), for Tensors and for Variables.
namespace trireme TRIREME_EXPORT {
namespace ops {

// A permutation of dims, followed by a reshape.
struct Arrangement {
  std::vector<int> order;  // the result's dim i is dim order[i]; empty: unchanged
  Shape shape;
};

// How an operand becomes a matrix: the operand is summed over `summed`, then arranged as [batch, rows, columns], or [rows,
// columns].
struct EinsumOperand {
  Dims summed;  // empty: no sum
  Arrangement arrangement;
};

// The product of both operands, or the only operand, is reshaped to `product`, with one dim for each letter: [batch...,
// rows..., columns...]. Then `arrangement` turns this tensor into the result.
struct EinsumPlan {
  std::vector<EinsumOperand> operands;
  Shape product;
  Arrangement arrangement;
};

// Throws if the equation does not fit the shapes.
EinsumPlan einsum_plan(std::string_view equation, const std::vector<Shape>& shapes);

// Runs a plan with the functions of `steps`: sum(x, dims), permute(x, order), reshape(x, shape), multiply(a, b).
template <typename X>
X run_einsum(const EinsumPlan& plan, const std::vector<X>& operands, const auto& steps) {
  const auto reshaped = [&](const X& x, const Shape& shape) { return x.shape() == shape ? x : steps.reshape(x, shape); };
  const auto arranged = [&](const X& x, const Arrangement& arrangement) {
    return reshaped(arrangement.order.empty() ? x : steps.permute(x, arrangement.order), arrangement.shape);
  };
  std::vector<X> matrices;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const EinsumOperand& of = plan.operands[i];
    matrices.push_back(arranged(of.summed.empty() ? operands[i] : steps.sum(operands[i], of.summed), of.arrangement));
  }
  const X product = matrices.size() == 2 ? steps.multiply(matrices[0], matrices[1]) : matrices[0];
  return arranged(plan.arrangement.order.empty() ? product : reshaped(product, plan.product), plan.arrangement);
}

}  // namespace ops
}  // namespace trireme
