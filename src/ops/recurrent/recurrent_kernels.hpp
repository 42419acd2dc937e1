#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

// One row of one time step of a recurrent layer: the cells of ops/recurrent/recurrent_cell_body.hpp for every element.
template <typename T>
struct RecurrentKernels {
  void (*lstm)(T* gates, const T* recurrent, const T* bias, const T* c_old, T* c, T* h, T* out, std::int64_t hidden);
  void (*lstm_backward)(T* gates, const T* c, const T* c_old, const T* dout, T* dh, T* dc, std::int64_t hidden);
  void (*gru)(T* gates, const T* recurrent, const T* bias, T* carried, T* h, T* out, std::int64_t hidden);
  void (*gru_backward)(T* gates, T* drecurrent, const T* carried, const T* h_old, const T* dout, T* dh, std::int64_t hidden);
};

TRIREME_KERNEL_TABLE(KernelTable<RecurrentKernels>, recurrent_kernels)

}  // namespace trireme::ops
