#pragma once

#include <utility>

#include "trireme/autograd/composed/operators.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// A residual stream, and the output of the last layer, which is not yet added to the stream. The next layer's norm adds and
// normalises in one pass over memory. This is the flow of pre-norm transformers.
template <typename P, typename D = Cpu>
struct Residual {
  Variable<typename P::Master, D> stream;
  Variable<typename P::Compute, D> pending = {};  // undefined: nothing is pending

  void each(auto&& visit) { visit(stream), visit(pending); }
  Residual settled() const {
    if (!pending.value().defined()) return *this;
    return {.stream = stream + pending};
  }
};

// norm: a LayerNorm or RmsNorm. Returns {stream + pending, the norm of this sum}.
template <typename Norm, typename P, typename D>
std::pair<Variable<typename P::Master, D>, Variable<typename P::Compute, D>> settle(const Norm& norm, const Residual<P, D>& x) {
  if (x.pending.value().defined()) return norm.add_and_normalize(x.stream, x.pending);
  return {x.stream, norm.forward(x.stream)};
}

}  // namespace nn
}  // namespace trireme
