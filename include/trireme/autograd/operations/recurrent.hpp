#pragma once

#include <cstdint>
#include <span>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/recurrent/recurrent.hpp"

namespace trireme TRIREME_EXPORT {

// Names and shapes as in ops::RecurrentWeights; biases may be undefined.
template <typename T, typename D = Cpu>
struct RecurrentVariables {
  Variable<T, D> weight_ih;
  Variable<T, D> weight_hh;
  Variable<T, D> bias_ih;
  Variable<T, D> bias_hh;
};

template <typename T, typename D = Cpu>
struct RecurrentResult {
  Variable<T, D> out;  // [batch, time, directions * hidden]: the forward direction, then the reverse direction
  Variable<T, D> h_n;  // [directions, batch, hidden]
  Variable<T, D> c_n;  // as h_n; undefined for a GRU
};

// Runs one layer with one or two directions. x is [batch, time, in], h0 and c0 are [directions, batch, hidden]; c0 is undefined
// for a GRU. lengths [batch] is as in ops::RecurrentForward, and results are as for torch's packed sequences.
template <typename T, typename D>
TRIREME_EXPORT RecurrentResult<T, D> recurrent_layer(ops::RecurrentCell cell, const Variable<T, D>& x, const Variable<T, D>& h0,
                                                     const Variable<T, D>& c0,
                                                     std::span<const RecurrentVariables<T, D>> directions,
                                                     const Tensor<std::int32_t, D>& lengths = {});

}  // namespace trireme
