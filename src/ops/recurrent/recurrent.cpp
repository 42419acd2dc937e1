#include <algorithm>

#include "ops/base/parallel.hpp"
#include "ops/matmul/matmul_double.hpp"
#include "ops/matmul/matmul_plan.hpp"
#include "ops/recurrent/recurrent_kernels.hpp"
#include "ops/recurrent/recurrent_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

template <typename T>
T* row_of(const Tensor<T>& tensor, std::int64_t row) {
  return tensor.data() + row * tensor.shape().back();
}

// This direction's part of a row of `out` or of its gradient.
template <typename T>
T* part_of_row(const Tensor<T>& tensor, std::int64_t row, const RecurrentForward<T, Cpu>& pass) {
  return row_of(tensor, row) + pass.out_offset;
}

// Calls step(row) for every row, on this rank's threads. An element of a row costs several exponentials.
template <typename Step>
void for_rows(const RecurrentRows& rows, const Step& step) {
  constexpr std::int64_t cost = 16;
  parallel_rows(rows.batch, cost * rows.hidden, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) step(row);
  });
}

template <typename T>
void check_lengths(const RecurrentForward<T, Cpu>& pass, const RecurrentRows& rows) {
  for (std::int64_t row = 0; row < rows.batch; ++row) {
    if (rows.has_valid_length(row)) continue;
    require(false, "{}: a length of {} does not lie in [1, {}]", pass.cell == RecurrentCell::lstm ? "lstm" : "gru",
            rows.lengths[row], rows.time);
  }
}

// Sets the `width` elements from `offset` on to zero in the steps after each row's end.
template <typename T>
void clear_padding(const RecurrentRows& rows, const Tensor<T>& tensor, std::int64_t offset, std::int64_t width) {
  for (std::int64_t row = 0; row < rows.batch; ++row) {
    for (std::int64_t t = rows.length(row); t < rows.time; ++t) {
      std::fill_n(row_of(tensor, row * rows.time + t) + offset, width, T(0));
    }
  }
}

template <typename T>
const T* c_before(const RecurrentForward<T, Cpu>& pass, const RecurrentRows& rows, std::int64_t row, std::int64_t step) {
  return step == 0 ? row_of(pass.c0, row) : row_of(pass.inner, rows.place(row, step - 1));
}

}  // namespace

template <>
template <typename T>
void Recurrent<Cpu>::forward(const RecurrentForward<T, Cpu>& pass, const RecurrentRows& rows) {
  check_lengths(pass, rows);
  const auto& kernels = recurrent_kernels().of<T>();
  const std::int64_t hidden = rows.hidden;
  std::copy_n(pass.h0.data(), pass.h0.numel(), pass.h_n.data());
  const MatmulShape product{.m = rows.batch, .n = rows.gates, .k = hidden, .transpose_b = true, .packed_b = true};
  const Tensor<T> weight = pack_b(product, pass.weights.weight_hh.data());
  const Tensor<T> bias = pass.weights.bias_hh.defined() ? pass.weights.bias_hh : Tensor<T>::zeros({rows.gates});
  const Tensor<T> recurrent({rows.batch, rows.gates});
  for (std::int64_t step = 0; step < rows.time; ++step) {
    run_matmul(product, pass.h_n.data(), weight.data(), nullptr, recurrent.data());
    for_rows(rows, [&](std::int64_t row) {
      if (step >= rows.length(row)) return;
      const std::int64_t at = rows.place(row, step);
      T* gates = row_of(pass.gates, at);
      const T* from_h = row_of(recurrent, row);
      T* inner = row_of(pass.inner, at);
      T* h = row_of(pass.h_n, row);
      T* out = part_of_row(pass.out, at, pass);
      if (pass.cell == RecurrentCell::gru) return kernels.gru(gates, from_h, bias.data(), inner, h, out, hidden);
      kernels.lstm(gates, from_h, bias.data(), c_before(pass, rows, row, step), inner, h, out, hidden);
    });
  }
  clear_padding(rows, pass.out, pass.out_offset, hidden);
  if (pass.cell == RecurrentCell::gru) return;
  for (std::int64_t row = 0; row < rows.batch; ++row) {
    std::copy_n(row_of(pass.inner, rows.place(row, rows.length(row) - 1)), hidden, row_of(pass.c_n, row));
  }
}

template <>
template <typename T>
void Recurrent<Cpu>::backward(const RecurrentForward<T, Cpu>& pass, const RecurrentBackward<T, Cpu>& backward,
                              const RecurrentRows& rows) {
  const auto& kernels = recurrent_kernels().of<T>();
  const bool gru = pass.cell == RecurrentCell::gru;
  const std::int64_t hidden = rows.hidden;
  const Tensor<T>& drecurrent = gru ? backward.drecurrent : pass.gates;
  clear_padding(rows, pass.gates, 0, rows.gates);
  clear_padding(rows, drecurrent, 0, rows.gates);
  clear_padding(rows, backward.h_old, 0, hidden);
  const MatmulShape product{.m = rows.batch, .n = hidden, .k = rows.gates, .accumulate = true, .packed_b = true};
  const Tensor<T> weight = pack_b(product, pass.weights.weight_hh.data());
  const Tensor<T> of_step({rows.batch, rows.gates});  // the rows of drecurrent of one step
  for (std::int64_t step = rows.time - 1; step >= 0; --step) {
    for_rows(rows, [&](std::int64_t row) {
      if (step >= rows.length(row)) {
        std::fill_n(row_of(of_step, row), rows.gates, T(0));
        return;
      }
      const std::int64_t at = rows.place(row, step);
      T* h_old = row_of(backward.h_old, at);
      T* dh = row_of(backward.dh, row);
      const T* dout = part_of_row(backward.dout, at, pass);
      std::copy_n(step == 0 ? row_of(pass.h0, row) : part_of_row(pass.out, rows.place(row, step - 1), pass), hidden, h_old);
      if (gru) {
        kernels.gru_backward(row_of(pass.gates, at), row_of(drecurrent, at), row_of(pass.inner, at), h_old, dout, dh, hidden);
      } else {
        kernels.lstm_backward(row_of(pass.gates, at), row_of(pass.inner, at), c_before(pass, rows, row, step), dout, dh,
                              row_of(backward.dc, row), hidden);
      }
      std::copy_n(row_of(drecurrent, at), rows.gates, row_of(of_step, row));
    });
    run_matmul(product, of_step.data(), weight.data(), nullptr, backward.dh.data());
  }
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, recurrent, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, recurrent_backward, Cpu)

}  // namespace trireme::ops
