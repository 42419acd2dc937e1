#pragma once

#include "ops/base/check.hpp"
#include "ops/recurrent/recurrent_rows.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/recurrent/recurrent.hpp"

// The operations of ops/recurrent/recurrent.hpp for any device. The checks of shapes and the input's product are shared;
// Recurrent<D> goes through the steps.
namespace trireme::ops {

template <typename D>
struct Recurrent {
  // `gates` hold the input's product.
  template <typename T>
  static void forward(const RecurrentForward<T, D>& pass, const RecurrentRows& rows);
  template <typename T>
  static void backward(const RecurrentForward<T, D>& pass, const RecurrentBackward<T, D>& backward, const RecurrentRows& rows);
};

template <typename T, typename D>
RecurrentRows recurrent_rows(const RecurrentForward<T, D>& pass) {
  const std::int64_t hidden = pass.weights.weight_hh.dim(1);
  return {.batch = pass.x.dim(0),
          .time = pass.x.dim(1),
          .hidden = hidden,
          .gates = num_gates(pass.cell) * hidden,
          .reverse = pass.reverse,
          .lengths = pass.lengths.data()};
}

template <typename T, typename D>
RecurrentRows checked_rows(const RecurrentForward<T, D>& pass) {
  const char* name = pass.cell == RecurrentCell::lstm ? "lstm" : "gru";
  require(pass.x.shape().size() == 3, "{}: x has shape {}, but needs [batch, time, in]", name, pass.x.shape());
  require(pass.x.dim(1) > 0, "{}: x of shape {} has no steps", name, pass.x.shape());
  require(pass.weights.weight_hh.shape().size() == 2, "{}: weight_hh has shape {}, but needs [gates * hidden, hidden]", name,
          pass.weights.weight_hh.shape());
  const RecurrentRows rows = recurrent_rows(pass);
  const Shape state{rows.batch, rows.hidden};
  require_shape(name, "weight_hh", pass.weights.weight_hh, {rows.gates, rows.hidden});
  require_shape(name, "weight_ih", pass.weights.weight_ih, {rows.gates, pass.x.dim(2)});
  if (pass.weights.bias_ih.defined()) require_shape(name, "bias_ih", pass.weights.bias_ih, {rows.gates});
  if (pass.weights.bias_hh.defined()) require_shape(name, "bias_hh", pass.weights.bias_hh, {rows.gates});
  require_shape(name, "h0", pass.h0, state);
  require_shape(name, "h_n", pass.h_n, state);
  if (pass.cell == RecurrentCell::lstm) {
    require_shape(name, "c0", pass.c0, state);
    require_shape(name, "c_n", pass.c_n, state);
  }
  require_shape(name, "gates", pass.gates, {rows.batch, rows.time, rows.gates});
  require_shape(name, "inner", pass.inner, {rows.batch, rows.time, rows.hidden});
  require(pass.out.shape().size() == 3 && pass.out.dim(0) == rows.batch && pass.out.dim(1) == rows.time &&
              pass.out_offset >= 0 && pass.out_offset + rows.hidden <= pass.out.dim(2),
          "{}: out has shape {}, but needs [{}, {}, at least {}]", name, pass.out.shape(), rows.batch, rows.time,
          pass.out_offset + rows.hidden);
  if (pass.lengths.defined()) require_shape(name, "lengths", pass.lengths, {rows.batch});
  return rows;
}

template <typename T, typename D>
void recurrent(const RecurrentForward<T, D>& pass) {
  const RecurrentRows rows = checked_rows(pass);
  Tensor<T, D> gates = pass.gates;
  linear(pass.x, pass.weights.weight_ih, pass.weights.bias_ih, gates);
  if (rows.batch > 0) Recurrent<D>::forward(pass, rows);
}

template <typename T, typename D>
void recurrent_backward(const RecurrentForward<T, D>& pass, const RecurrentBackward<T, D>& backward) {
  constexpr const char* name = "recurrent_backward";
  require_shape(name, "dout", backward.dout, pass.out.shape());
  require_shape(name, "dh", backward.dh, pass.h_n.shape());
  if (pass.cell == RecurrentCell::lstm) require_shape(name, "dc", backward.dc, pass.h_n.shape());
  require_shape(name, "h_old", backward.h_old, pass.inner.shape());
  if (pass.cell == RecurrentCell::gru) require_shape(name, "drecurrent", backward.drecurrent, pass.gates.shape());
  if (pass.x.dim(0) > 0) Recurrent<D>::backward(pass, backward, recurrent_rows(pass));
}

}  // namespace trireme::ops
