#pragma once

#include <cstdint>

#include "ops/kernels/table.hpp"

namespace trireme::ops {

// One row of one time step of a recurrent layer; every pointer is a row, gate rows hold the gates one after the other.
template <typename T>
struct RecurrentKernels {
  // gates [4 * hidden] holds the input's part and gets i, f, g, o; h = o tanh(c), c = f c_old + i g. `out` is a copy of h.
  void (*lstm)(T* gates, const T* recurrent, const T* bias, const T* c_old, T* c, T* h, T* out, std::int64_t hidden);

  // gates become the gradient of the gates' inputs, dc that of c_old; dh, to which dout is added, becomes zero.
  void (*lstm_backward)(T* gates, const T* c, const T* c_old, const T* dout, T* dh, T* dc, std::int64_t hidden);

  // gates [3 * hidden] likewise get r, z, n; `carried` gets the recurrent part of n before r multiplies it.
  void (*gru)(T* gates, const T* recurrent, const T* bias, T* carried, T* h, T* out, std::int64_t hidden);

  // gates become the gradient of the gates' inputs, drecurrent [3 * hidden] that of the recurrent parts; dh what passes by z.
  void (*gru_backward)(T* gates, T* drecurrent, const T* carried, const T* h_old, const T* dout, T* dh, std::int64_t hidden);
};

TRIREME_KERNEL_TABLE(KernelTable<RecurrentKernels>, recurrent_kernels)

}  // namespace trireme::ops
