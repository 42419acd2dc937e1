#pragma once

#include "ops/recurrent/recurrent_body.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/recurrent/recurrent.hpp"

// A recurrent layer as a matrix product and a body, run(step), for each time step. Sizes and places of steps do not depend on
// data on the GPU.
namespace trireme::ops {

template <typename T, typename D, typename Run>
void forward_steps(const RecurrentForward<T, D>& pass, const RecurrentRows& rows, const Run& run) {
  const RecurrentWeights<T, D>& weights = pass.weights;
  const Tensor<T, D> bias = weights.bias_hh.defined() ? weights.bias_hh : Tensor<T, D>::zeros({rows.gates});
  Tensor<T, D> recurrent({rows.batch, rows.gates});
  RecurrentStep<T> of{.rows = rows,
                      .gates = pass.gates.data(),
                      .recurrent = recurrent.data(),
                      .bias = bias.data(),
                      .inner = pass.inner.data(),
                      .h = pass.h_n.data(),
                      .c0 = pass.c0.data(),
                      .c_n = pass.c_n.data(),
                      .out = pass.out.data() + pass.out_offset,
                      .out_width = pass.out.dim(2),
                      .step = 0};
  device::copy_bytes(D{}, pass.h_n.data(), D{}, pass.h0.data(), pass.h0.span().size_bytes());
  for (; of.step < rows.time; ++of.step) {
    matmul(pass.h_n, weights.weight_hh, recurrent, {.transpose_b = true});
    run(of);
  }
}

template <typename T, typename D, typename Run>
void backward_steps(const RecurrentForward<T, D>& pass, const RecurrentBackward<T, D>& backward, const RecurrentRows& rows,
                    const Run& run) {
  const bool gru = pass.cell == RecurrentCell::gru;
  const Tensor<T, D> of_step({rows.batch, rows.gates});
  Tensor<T, D> dh = backward.dh;
  RecurrentBackwardStep<T> of{.rows = rows,
                              .gates = pass.gates.data(),
                              .inner = pass.inner.data(),
                              .h0 = pass.h0.data(),
                              .c0 = pass.c0.data(),
                              .out = pass.out.data() + pass.out_offset,
                              .dout = backward.dout.data() + pass.out_offset,
                              .out_width = pass.out.dim(2),
                              .dh = dh.data(),
                              .dc = gru ? nullptr : backward.dc.data(),
                              .h_old = backward.h_old.data(),
                              .drecurrent = gru ? backward.drecurrent.data() : pass.gates.data(),
                              .of_step = of_step.data(),
                              .step = rows.time - 1};
  for (; of.step >= 0; --of.step) {
    run(of);
    matmul(of_step, pass.weights.weight_hh, dh, {.accumulate = true});
  }
}

}  // namespace trireme::ops
