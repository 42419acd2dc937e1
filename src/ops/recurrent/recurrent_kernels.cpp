#include "ops/recurrent/recurrent_kernels.hpp"

#include "ops/recurrent/recurrent_cell_body.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
void lstm(T* gates, const T* recurrent, const T* bias, const T* c_old, T* c, T* h, T* out, std::int64_t hidden) {
#pragma omp simd
  for (std::int64_t j = 0; j < hidden; ++j) lstm_cell(gates, recurrent, bias, c_old, c, h, out, hidden, j);
}

template <typename T>
void lstm_backward(T* gates, const T* c, const T* c_old, const T* dout, T* dh, T* dc, std::int64_t hidden) {
#pragma omp simd
  for (std::int64_t j = 0; j < hidden; ++j) lstm_cell_backward(gates, c, c_old, dout, dh, dc, hidden, j);
}

template <typename T>
void gru(T* gates, const T* recurrent, const T* bias, T* carried, T* h, T* out, std::int64_t hidden) {
#pragma omp simd
  for (std::int64_t j = 0; j < hidden; ++j) gru_cell(gates, recurrent, bias, carried, h, out, hidden, j);
}

template <typename T>
void gru_backward(T* gates, T* drecurrent, const T* carried, const T* h_old, const T* dout, T* dh, std::int64_t hidden) {
#pragma omp simd
  for (std::int64_t j = 0; j < hidden; ++j) gru_cell_backward(gates, drecurrent, carried, h_old, dout, dh, hidden, j);
}

template <typename T>
constexpr RecurrentKernels<T> kernels{lstm<T>, lstm_backward<T>, gru<T>, gru_backward<T>};

}  // namespace

const KernelTable<RecurrentKernels> recurrent_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
