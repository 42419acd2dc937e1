#pragma once

#include <cstdint>

#include "trireme/math/exponential.hpp"

// Element j of one row of one time step of a recurrent layer (ops/recurrent/recurrent.hpp). Every pointer is a row; gate rows
// hold the gates one after the other.
namespace trireme::ops {

template <typename T>
TRIREME_HOST_DEVICE T sigmoid_slope(T value) {
  return value * (T(1) - value);
}

template <typename T>
TRIREME_HOST_DEVICE T tanh_slope(T value) {
  return T(1) - value * value;
}

// gates [4 * hidden] holds the input's product and becomes i, f, g, o; h = o tanh(c), c = f c_old + i g. `out` is a copy of h.
template <typename T>
TRIREME_HOST_DEVICE void lstm_cell(T* gates, const T* recurrent, const T* bias, const T* c_old, T* c, T* h, T* out,
                                   std::int64_t hidden, std::int64_t j) {
  const std::int64_t at_f = hidden + j;
  const std::int64_t at_g = 2 * hidden + j;
  const std::int64_t at_o = 3 * hidden + j;
  const T i = math::sigmoid(gates[j] + recurrent[j] + bias[j]);
  const T f = math::sigmoid(gates[at_f] + recurrent[at_f] + bias[at_f]);
  const T g = math::tanh(gates[at_g] + recurrent[at_g] + bias[at_g]);
  const T o = math::sigmoid(gates[at_o] + recurrent[at_o] + bias[at_o]);
  const T cell = f * c_old[j] + i * g;
  const T state = o * math::tanh(cell);
  gates[j] = i;
  gates[at_f] = f;
  gates[at_g] = g;
  gates[at_o] = o;
  c[j] = cell;
  h[j] = state;
  out[j] = state;
}

// gates become the gradient of the gates' inputs, dc the gradient of c_old. dh + dout is the gradient of h; dh becomes zero.
template <typename T>
TRIREME_HOST_DEVICE void lstm_cell_backward(T* gates, const T* c, const T* c_old, const T* dout, T* dh, T* dc,
                                            std::int64_t hidden, std::int64_t j) {
  const T i = gates[j];
  const T f = gates[hidden + j];
  const T g = gates[2 * hidden + j];
  const T o = gates[3 * hidden + j];
  const T tanh_c = math::tanh(c[j]);
  const T dstate = dh[j] + dout[j];
  const T dcell = dc[j] + dstate * o * tanh_slope(tanh_c);
  gates[j] = dcell * g * sigmoid_slope(i);
  gates[hidden + j] = dcell * c_old[j] * sigmoid_slope(f);
  gates[2 * hidden + j] = dcell * i * tanh_slope(g);
  gates[3 * hidden + j] = dstate * tanh_c * sigmoid_slope(o);
  dc[j] = dcell * f;
  dh[j] = T(0);
}

// gates [3 * hidden] likewise become r, z, n; `carried` becomes the recurrent part of n, before it is multiplied by r.
template <typename T>
TRIREME_HOST_DEVICE void gru_cell(T* gates, const T* recurrent, const T* bias, T* carried, T* h, T* out, std::int64_t hidden,
                                  std::int64_t j) {
  const std::int64_t at_z = hidden + j;
  const std::int64_t at_n = 2 * hidden + j;
  const T r = math::sigmoid(gates[j] + recurrent[j] + bias[j]);
  const T z = math::sigmoid(gates[at_z] + recurrent[at_z] + bias[at_z]);
  const T part = recurrent[at_n] + bias[at_n];
  const T n = math::tanh(gates[at_n] + r * part);
  const T state = n + z * (h[j] - n);
  gates[j] = r;
  gates[at_z] = z;
  gates[at_n] = n;
  carried[j] = part;
  h[j] = state;
  out[j] = state;
}

// gates become the gradient of the gates' inputs, drecurrent [3 * hidden] the gradient of the recurrent parts, and dh the part
// of the gradient of h_old that comes through z.
template <typename T>
TRIREME_HOST_DEVICE void gru_cell_backward(T* gates, T* drecurrent, const T* carried, const T* h_old, const T* dout, T* dh,
                                           std::int64_t hidden, std::int64_t j) {
  const T r = gates[j];
  const T z = gates[hidden + j];
  const T n = gates[2 * hidden + j];
  const T dstate = dh[j] + dout[j];
  const T dn = dstate * (T(1) - z) * tanh_slope(n);
  const T dz = dstate * (h_old[j] - n) * sigmoid_slope(z);
  const T dr = dn * carried[j] * sigmoid_slope(r);
  gates[j] = dr;
  gates[hidden + j] = dz;
  gates[2 * hidden + j] = dn;
  drecurrent[j] = dr;
  drecurrent[hidden + j] = dz;
  drecurrent[2 * hidden + j] = dn * r;
  dh[j] = dstate * z;
}

}  // namespace trireme::ops
