#include "trireme/ops/recurrent.hpp"

#include <algorithm>

#include "ops/check.hpp"
#include "ops/kernels/recurrent.hpp"
#include "ops/matmul_double.hpp"
#include "ops/matmul_plan.hpp"
#include "ops/parallel.hpp"
#include "trireme/ops/matmul.hpp"

namespace trireme::ops {
namespace {

// Where the data of one layer and direction lie.
template <typename T>
struct Layout {
  explicit Layout(const RecurrentForward<T, Cpu>& pass)
      : pass_(pass),
        batch(pass.x.dim(0)),
        time(pass.x.dim(1)),
        hidden(pass.weights.weight_hh.dim(1)),
        gates(num_gates(pass.cell) * hidden),
        no_bias(pass.weights.bias_hh.defined() ? Tensor<T>() : Tensor<T>::zeros({gates})) {}

  const T* recurrent_bias() const { return no_bias.defined() ? no_bias.data() : pass_.weights.bias_hh.data(); }

  std::int64_t length(std::int64_t row) const { return pass_.lengths.defined() ? pass_.lengths.data()[row] : time; }

  // The place among [batch * time] rows of step `step` of a row, and of the step before, -1 for the first.
  std::int64_t place(std::int64_t row, std::int64_t step) const {
    return row * time + (pass_.reverse ? length(row) - 1 - step : step);
  }
  std::int64_t place_before(std::int64_t row, std::int64_t step) const { return step == 0 ? -1 : place(row, step - 1); }

  T* out(const Tensor<T>& tensor, std::int64_t at) const {
    return tensor.data() + at * tensor.shape().back() + pass_.out_offset;
  }

  const RecurrentForward<T, Cpu>& pass_;
  std::int64_t batch, time, hidden, gates;
  Tensor<T> no_bias;
};

template <typename T>
T* row_of(const Tensor<T>& tensor, std::int64_t row) {
  return tensor.data() + row * tensor.shape().back();
}

// Calls step(row) for every row, on this rank's threads: a row costs several exponentials an element.
template <typename T, typename Step>
void for_rows(const Layout<T>& layout, const Step& step) {
  constexpr std::int64_t cost = 16;
  parallel_rows(layout.batch, cost * layout.hidden, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) step(row);
  });
}

template <typename T>
void check(const RecurrentForward<T, Cpu>& pass) {
  const char* name = pass.cell == RecurrentCell::lstm ? "lstm" : "gru";
  require(pass.x.shape().size() == 3, "{}: x has shape {}, but needs [batch, time, in]", name, pass.x.shape());
  require(pass.x.dim(0) > 0 && pass.x.dim(1) > 0, "{}: x of shape {} has no rows or no steps", name, pass.x.shape());
  require(pass.weights.weight_hh.shape().size() == 2, "{}: weight_hh has shape {}, but needs [gates * hidden, hidden]", name,
          pass.weights.weight_hh.shape());
  const Layout layout(pass);
  const Shape state{layout.batch, layout.hidden};
  require_shape(name, "weight_hh", pass.weights.weight_hh.shape(), {layout.gates, layout.hidden});
  require_shape(name, "weight_ih", pass.weights.weight_ih.shape(), {layout.gates, pass.x.dim(2)});
  if (pass.weights.bias_ih.defined()) require_shape(name, "bias_ih", pass.weights.bias_ih.shape(), {layout.gates});
  if (pass.weights.bias_hh.defined()) require_shape(name, "bias_hh", pass.weights.bias_hh.shape(), {layout.gates});
  require_shape(name, "h0", pass.h0.shape(), state);
  require_shape(name, "h_n", pass.h_n.shape(), state);
  if (pass.cell == RecurrentCell::lstm) {
    require_shape(name, "c0", pass.c0.shape(), state);
    require_shape(name, "c_n", pass.c_n.shape(), state);
  }
  require_shape(name, "gates", pass.gates.shape(), {layout.batch, layout.time, layout.gates});
  require_shape(name, "inner", pass.inner.shape(), {layout.batch, layout.time, layout.hidden});
  require(pass.out.shape().size() == 3 && pass.out.dim(0) == layout.batch && pass.out.dim(1) == layout.time &&
              pass.out_offset >= 0 && pass.out_offset + layout.hidden <= pass.out.dim(2),
          "{}: out has shape {}, but needs [{}, {}, at least {}]", name, pass.out.shape(), layout.batch, layout.time,
          pass.out_offset + layout.hidden);
  if (!pass.lengths.defined()) return;
  require_shape(name, "lengths", pass.lengths.shape(), {layout.batch});
  for (const std::int32_t length : pass.lengths.span()) {
    require(length >= 1 && length <= layout.time, "{}: a length of {} does not lie in [1, {}]", name, length, layout.time);
  }
}

// The [gates] or [hidden] elements of rows behind a row's end.
template <typename T>
void clear_padding(const Layout<T>& layout, const Tensor<T>& tensor, std::int64_t offset, std::int64_t width) {
  for (std::int64_t row = 0; row < layout.batch; ++row) {
    for (std::int64_t t = layout.length(row); t < layout.time; ++t) {
      std::fill_n(row_of(tensor, row * layout.time + t) + offset, width, T(0));
    }
  }
}

}  // namespace

template <typename T, typename D>
void recurrent(const RecurrentForward<T, D>& pass) {
  check(pass);
  const Layout layout(pass);
  const auto& kernels = recurrent_kernels().of<T>();
  const std::int64_t hidden = layout.hidden;
  Tensor<T> gates = pass.gates;
  linear(pass.x, pass.weights.weight_ih, pass.weights.bias_ih, gates);
  std::copy_n(pass.h0.data(), pass.h0.numel(), pass.h_n.data());
  const MatmulShape product{.m = layout.batch, .n = layout.gates, .k = hidden, .transpose_b = true, .packed_b = true};
  const Tensor<T> weight = pack_b(product, pass.weights.weight_hh.data());
  const Tensor<T> recurrent({layout.batch, layout.gates});
  for (std::int64_t step = 0; step < layout.time; ++step) {
    run_matmul(product, pass.h_n.data(), weight.data(), nullptr, recurrent.data());
    for_rows(layout, [&](std::int64_t row) {
      if (step >= layout.length(row)) return;
      const std::int64_t at = layout.place(row, step);
      const T* from_h = row_of(recurrent, row);
      T* inner = row_of(pass.inner, at);
      T* h = row_of(pass.h_n, row);
      T* out = layout.out(pass.out, at);
      if (pass.cell == RecurrentCell::gru) {
        return kernels.gru(row_of(gates, at), from_h, layout.recurrent_bias(), inner, h, out, hidden);
      }
      const T* c_old = step == 0 ? row_of(pass.c0, row) : row_of(pass.inner, layout.place_before(row, step));
      kernels.lstm(row_of(gates, at), from_h, layout.recurrent_bias(), c_old, inner, h, out, hidden);
    });
  }
  clear_padding(layout, pass.out, pass.out_offset, hidden);
  if (pass.cell == RecurrentCell::gru) return;
  for (std::int64_t row = 0; row < layout.batch; ++row) {
    std::copy_n(row_of(pass.inner, layout.place(row, layout.length(row) - 1)), hidden, row_of(pass.c_n, row));
  }
}

template <typename T, typename D>
void recurrent_backward(const RecurrentForward<T, D>& pass, const RecurrentBackward<T, D>& backward) {
  const Layout layout(pass);
  const auto& kernels = recurrent_kernels().of<T>();
  const bool gru = pass.cell == RecurrentCell::gru;
  const std::int64_t hidden = layout.hidden;
  const Tensor<T>& drecurrent = gru ? backward.drecurrent : pass.gates;
  require_shape("recurrent_backward", "dout", backward.dout.shape(), pass.out.shape());
  require_shape("recurrent_backward", "dh", backward.dh.shape(), pass.h_n.shape());
  if (!gru) require_shape("recurrent_backward", "dc", backward.dc.shape(), pass.h_n.shape());
  require_shape("recurrent_backward", "h_old", backward.h_old.shape(), pass.inner.shape());
  require_shape("recurrent_backward", "drecurrent", drecurrent.shape(), pass.gates.shape());
  clear_padding(layout, pass.gates, 0, layout.gates);
  clear_padding(layout, drecurrent, 0, layout.gates);
  clear_padding(layout, backward.h_old, 0, hidden);
  const MatmulShape product{.m = layout.batch, .n = hidden, .k = layout.gates, .accumulate = true, .packed_b = true};
  const Tensor<T> weight = pack_b(product, pass.weights.weight_hh.data());
  const Tensor<T> of_step({layout.batch, layout.gates});  // the rows of drecurrent that one step made
  for (std::int64_t step = layout.time - 1; step >= 0; --step) {
    for_rows(layout, [&](std::int64_t row) {
      if (step >= layout.length(row)) {
        std::fill_n(row_of(of_step, row), layout.gates, T(0));
        return;
      }
      const std::int64_t at = layout.place(row, step);
      const std::int64_t before = layout.place_before(row, step);
      T* h_old = row_of(backward.h_old, at);
      T* dh = row_of(backward.dh, row);
      const T* dout = layout.out(backward.dout, at);
      std::copy_n(step == 0 ? row_of(pass.h0, row) : layout.out(pass.out, before), hidden, h_old);
      if (gru) {
        kernels.gru_backward(row_of(pass.gates, at), row_of(drecurrent, at), row_of(pass.inner, at), h_old, dout, dh, hidden);
      } else {
        const T* c_old = step == 0 ? row_of(pass.c0, row) : row_of(pass.inner, before);
        kernels.lstm_backward(row_of(pass.gates, at), row_of(pass.inner, at), c_old, dout, dh, row_of(backward.dc, row),
                              hidden);
      }
      std::copy_n(row_of(drecurrent, at), layout.gates, row_of(of_step, row));
    });
    run_matmul(product, of_step.data(), weight.data(), nullptr, backward.dh.data());
  }
}

#define TRIREME_INSTANTIATE(T)                              \
  template void recurrent(const RecurrentForward<T, Cpu>&); \
  template void recurrent_backward(const RecurrentForward<T, Cpu>&, const RecurrentBackward<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
