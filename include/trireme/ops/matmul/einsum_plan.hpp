#pragma once

#include <string_view>
#include <vector>

#include "trireme/core/dims.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"

// What einsum() of tensors and of variables does.
namespace trireme TRIREME_EXPORT {
namespace ops {

// A permutation of dims, as exchanges of two dims of a reshaped tensor.
struct Permutation {
  struct Exchange {
    Shape shape;  // of what is transposed
    int first;
    int second;
  };
  std::vector<Exchange> exchanges;
  Shape result;
};

// An operand's way to a matrix: sums over `summed`, then the permutation, whose result is [batch..., rows, columns].
struct EinsumOperand {
  Dims summed;  // none where it is empty
  Permutation permutation;
};

// The product of both operands, or the only one, is then permuted into the result.
struct EinsumPlan {
  std::vector<EinsumOperand> operands;
  Permutation permutation;
};

// Throws where the equation and the shapes do not fit.
EinsumPlan einsum_plan(std::string_view equation, const std::vector<Shape>& shapes);

// Runs a plan by `steps`: sum(x, dims), reshape(x, shape), transpose(x, first, second), multiply(a, b).
template <typename X>
X run_einsum(const EinsumPlan& plan, const std::vector<X>& operands, const auto& steps) {
  const auto reshaped = [&](const X& x, const Shape& shape) { return x.shape() == shape ? x : steps.reshape(x, shape); };
  const auto permuted = [&](X x, const Permutation& permutation) {
    for (const Permutation::Exchange& exchange : permutation.exchanges) {
      x = steps.transpose(reshaped(x, exchange.shape), exchange.first, exchange.second);
    }
    return reshaped(x, permutation.result);
  };
  std::vector<X> matrices;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const EinsumOperand& of = plan.operands[i];
    matrices.push_back(permuted(of.summed.empty() ? operands[i] : steps.sum(operands[i], of.summed), of.permutation));
  }
  return permuted(matrices.size() == 2 ? steps.multiply(matrices[0], matrices[1]) : matrices[0], plan.permutation);
}

}  // namespace ops
}  // namespace trireme
