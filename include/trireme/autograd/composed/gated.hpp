#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"

// Gated activations (Dauphin et al. 2016, arXiv 1612.08083; Shazeer 2020, arXiv 2002.05202), PReLU, and stochastic depth.
namespace trireme TRIREME_EXPORT {

// first half * sigmoid(second half) along a dim, as torch.nn.functional.glu.
template <typename T, typename D>
Variable<T, D> glu(const Variable<T, D>& x, int dim = -1) {
  require_operands("glu", x);
  const int place = ops::dim_of("glu", x.shape(), dim);
  const std::int64_t half = x.shape()[place] / 2;
  require(x.shape()[place] == 2 * half, "glu: dim {} of x {} is odd and can't be halved", dim, x.shape());
  return gated_activation(ops::Activation::sigmoid, narrow(x, place, half, half), narrow(x, place, 0, half));
}

// The next three return silu(gate) * x, gelu_erf(gate) * x and relu(gate) * x. gate and x have equal shapes.
template <typename T, typename D>
Variable<T, D> swiglu(const Variable<T, D>& gate, const Variable<T, D>& x) {
  return gated_activation(ops::Activation::silu, gate, x);
}
template <typename T, typename D>
Variable<T, D> geglu(const Variable<T, D>& gate, const Variable<T, D>& x) {
  return gated_activation(ops::Activation::gelu_erf, gate, x);
}
template <typename T, typename D>
Variable<T, D> reglu(const Variable<T, D>& gate, const Variable<T, D>& x) {
  return gated_activation(ops::Activation::relu, gate, x);
}

// x where x > 0, weight * x elsewhere (He et al. 2015, arXiv 1502.01852); x[..., channels], weight [channels] or [1].
template <typename T, typename D>
Variable<T, D> prelu(const Variable<T, D>& x, const Variable<T, D>& weight) {
  require_operands("prelu", x, weight);
  require(
      weight.shape().size() == 1 && (weight.shape()[0] == 1 || (x.shape().size() > 0 && weight.shape()[0] == x.shape().back())),
      "prelu: weight has shape {}, but needs [1] or one element for each channel of x {}", weight.shape(), x.shape());
  return where(gt(x, 0), x, multiply(x, weight));
}

// Stochastic depth (Huang et al. 2016, arXiv 1603.09382): each sample of x[batch, ...] becomes 0 with this probability, or is
// divided by 1 - probability. Use it on the branch that is added to a residual stream. The choice of samples depends on the
// same values as the choice of elements in dropout(), and never on how samples are spread over ranks. Without a tape, as in
// evaluation, drop_path() returns x.
template <typename T, typename D>
Variable<T, D> drop_path(const Variable<T, D>& x, double probability, std::string_view stream) {
  require_operands("drop_path", x);
  require(x.shape().size() > 0, "drop_path: x is a scalar, but needs dims [batch, ...]");
  std::vector<std::int64_t> dims(static_cast<std::size_t>(x.shape().size()), 1);
  dims[0] = x.shape()[0];
  const Variable<T, D> kept = dropout(Variable<T, D>(Tensor<T, D>::full(Shape(dims), T(1.0f))), probability, stream);
  return Tape::current() == nullptr || probability == 0 ? x : multiply(x, kept);
}

// dropout() of x[..., features] on a rank that holds only the range `here` of `all` features. Drops the same elements as a rank
// with all features would.
template <typename T, typename D>
Variable<T, D> dropout_of_part(const Variable<T, D>& x, const Range& here, std::int64_t all, double probability,
                               std::string_view stream) {
  std::vector<std::int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
  dims.back() = all;
  const Variable<T, D> kept = dropout(Variable<T, D>(Tensor<T, D>::full(Shape(dims), T(1.0f))), probability, stream);
  return multiply(x, narrow(kept, static_cast<int>(dims.size()) - 1, here.begin, here.count()));
}

}  // namespace trireme
