#pragma once

#include <limits>

#include "device/cuda/team.hpp"
#include "ops/recurrent/recurrent_cell_body.hpp"
#include "ops/recurrent/recurrent_rows.hpp"

// One time step of all rows of a recurrent layer (ops/recurrent/recurrent.hpp), for the element i of [batch * hidden]. Steps
// after a row's end clear its padding. A row with an invalid length becomes NaN.
namespace trireme::ops {

// Runs after the product of the states with weight_hh. `out` points to this direction's part of a row.
template <typename T>
struct RecurrentStep {
  RecurrentRows rows;
  T* gates;
  const T* recurrent;  // [batch, gates], the product
  const T* bias;
  T* inner;
  T* h;
  const T* c0;  // null for a GRU, like c_n
  T* c_n;
  T* out;
  std::int64_t out_width;
  std::int64_t step;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t hidden = rows.hidden;
    const std::int64_t row = i / hidden;
    const std::int64_t j = i % hidden;
    const std::int64_t at = rows.place(row, step);
    T* of_out = out + at * out_width;
    const std::int64_t length = rows.length(row);
    if (step >= length) {
      of_out[j] = T(0);
      return;
    }
    T* of_gates = gates + at * rows.gates;
    if (!rows.has_valid_length(row)) of_gates[j] = std::numeric_limits<T>::quiet_NaN();
    const T* from_h = recurrent + row * rows.gates;
    T* of_inner = inner + at * hidden;
    if (c_n == nullptr) return gru_cell(of_gates, from_h, bias, of_inner, h + row * hidden, of_out, hidden, j);
    const T* c_old = step == 0 ? c0 + row * hidden : inner + rows.place(row, step - 1) * hidden;
    lstm_cell(of_gates, from_h, bias, c_old, of_inner, h + row * hidden, of_out, hidden, j);
    if (step + 1 == length) c_n[i] = of_inner[j];
  }
};

// Runs before the product with weight_hh that adds to dh.
template <typename T>
struct RecurrentBackwardStep {
  RecurrentRows rows;
  T* gates;
  const T* inner;
  const T* h0;
  const T* c0;  // null for a GRU, like dc
  const T* out;
  const T* dout;
  std::int64_t out_width;
  T* dh;
  T* dc;
  T* h_old;
  T* drecurrent;  // `gates` for an LSTM
  T* of_step;     // [batch, gates]: the rows of drecurrent of this step
  std::int64_t step;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t hidden = rows.hidden;
    const std::int64_t row = i / hidden;
    const std::int64_t j = i % hidden;
    const std::int64_t at = rows.place(row, step);
    T* of_gates = gates + at * rows.gates;
    T* of_drecurrent = drecurrent + at * rows.gates;
    T* of_h_old = h_old + at * hidden;
    if (step >= rows.length(row)) {
      for (std::int64_t gate = j; gate < rows.gates; gate += hidden) {
        of_gates[gate] = of_drecurrent[gate] = of_step[row * rows.gates + gate] = T(0);
      }
      of_h_old[j] = T(0);
      return;
    }
    const std::int64_t before = step == 0 ? -1 : rows.place(row, step - 1);
    of_h_old[j] = step == 0 ? h0[i] : out[before * out_width + j];
    const T* of_dout = dout + at * out_width;
    T* of_dh = dh + row * hidden;
    const T* of_inner = inner + at * hidden;
    if (dc == nullptr) {
      gru_cell_backward(of_gates, of_drecurrent, of_inner, of_h_old, of_dout, of_dh, hidden, j);
    } else {
      const T* c_old = step == 0 ? c0 + row * hidden : inner + before * hidden;
      lstm_cell_backward(of_gates, of_inner, c_old, of_dout, of_dh, dc + row * hidden, hidden, j);
    }
    for (std::int64_t gate = j; gate < rows.gates; gate += hidden) of_step[row * rows.gates + gate] = of_drecurrent[gate];
  }
};

}  // namespace trireme::ops
