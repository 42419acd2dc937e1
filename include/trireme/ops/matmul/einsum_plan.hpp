#pragma once

#include <string_view>
#include <vector>

#include "trireme/core/dims.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"

// What einsum() of tensors and of variables does.
namespace trireme TRIREME_EXPORT {
namespace ops {

// Dims in another order, then under another shape.
struct Arrangement {
  std::vector<int> order;  // the result's dim i is dim order[i]; empty: they stay
  Shape shape;
};

// An operand's way to a matrix: sums over `summed`, then an arrangement as [batch, rows, columns], or [rows, columns].
struct EinsumOperand {
  Dims summed;  // none where it is empty
  Arrangement arrangement;
};

// The product of both operands, or the only one, gets the shape `product`, [batch..., rows..., columns...] by letters, and is
// arranged as the result.
struct EinsumPlan {
  std::vector<EinsumOperand> operands;
  Shape product;
  Arrangement arrangement;
};

// Throws where the equation and the shapes do not fit.
EinsumPlan einsum_plan(std::string_view equation, const std::vector<Shape>& shapes);

// Runs a plan by `steps`: sum(x, dims), permute(x, order), reshape(x, shape), multiply(a, b).
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
