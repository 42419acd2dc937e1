#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/ops/recurrent/recurrent_cell.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

constexpr std::int64_t num_gates(RecurrentCell cell) { return cell == RecurrentCell::lstm ? 4 : 3; }

// Weights with the names and shapes of torch.nn.LSTM and torch.nn.GRU. Both biases may be undefined.
template <typename T, typename D = Cpu>
struct RecurrentWeights {
  Tensor<T, D> weight_ih;  // [gates * hidden, in]
  Tensor<T, D> weight_hh;  // [gates * hidden, hidden]
  Tensor<T, D> bias_ih;    // [gates * hidden]
  Tensor<T, D> bias_hh;    // [gates * hidden]
};

// One layer in one direction: x [batch, time, in], h0 and c0 [batch, hidden]. A row ends after lengths[row] steps: later
// outputs are zero, and h_n and c_n are the states after the row's last step. `reverse` reads every row from its last step to
// its first. A length outside [1, time] is an error; on a GPU, where the host does not wait, the row becomes NaN.
template <typename T, typename D = Cpu>
struct RecurrentForward {
  RecurrentCell cell = RecurrentCell::lstm;
  bool reverse = false;
  Tensor<T, D> x;
  Tensor<std::int32_t, D> lengths;  // [batch], 1 to time; undefined: all rows are of full length
  Tensor<T, D> h0;
  Tensor<T, D> c0;  // undefined for a GRU
  RecurrentWeights<T, D> weights;

  Tensor<T, D> out;             // [batch, time, directions * hidden]
  std::int64_t out_offset = 0;  // this direction fills out[..., out_offset : out_offset + hidden]
  Tensor<T, D> h_n;             // [batch, hidden]
  Tensor<T, D> c_n;             // [batch, hidden]; undefined for a GRU
  Tensor<T, D> gates;           // [batch, time, gates * hidden], kept for the backward pass
  Tensor<T, D> inner;           // [batch, time, hidden], kept for the backward pass: c (LSTM) or the recurrent part of n (GRU)
};

template <typename T, typename D>
TRIREME_EXPORT void recurrent(const RecurrentForward<T, D>& step);

// Computes the gradients of the states. Overwrites forward.gates with the gradient of the product x weight_ih^T.
template <typename T, typename D = Cpu>
struct RecurrentBackward {
  Tensor<T, D> dout;        // the shape of out
  Tensor<T, D> dh;          // [batch, hidden]; in: the gradient of h_n; out: the gradient of h0
  Tensor<T, D> dc;          // [batch, hidden]; in: the gradient of c_n; out: the gradient of c0; undefined for a GRU
  Tensor<T, D> h_old;       // [batch, time, hidden]; out: the h before each step
  Tensor<T, D> drecurrent;  // [batch, time, gates * hidden]; out: the gradient of h weight_hh^T; for a GRU only
};

template <typename T, typename D>
TRIREME_EXPORT void recurrent_backward(const RecurrentForward<T, D>& forward, const RecurrentBackward<T, D>& backward);

}  // namespace ops
}  // namespace trireme
