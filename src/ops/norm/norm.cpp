#include "ops/base/row_parts.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/norm/norm_kernels.hpp"
#include "ops/norm/norm_on.hpp"
#include "precision/instantiate.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme::ops {
namespace {

template <typename A>
const NormPasses<A>& passes(NormKind kind) {
  const NormKernels<A>& kernels = norm_kernels().of<A>();
  return kind == NormKind::layer ? kernels.layer_norm : kernels.rms_norm;
}

}  // namespace

template <>
template <typename T>
void Norms<Cpu>::forward(NormKind kind, const NormForward<T, Cpu>& pass) {
  const bool has_mean = kind == NormKind::layer;
  const auto& kernels = passes<Accumulate<T>>(kind);
  const std::int64_t rows = pass.x.shape().rows();
  const std::int64_t width = pass.x.shape().back();
  using A = Accumulate<T>;
  const NormRows<A> all{.x = pass.x.data(),
                        .residual = nullptr,
                        .weight = pass.weight.data(),
                        .bias = pass.bias.data(),
                        .epsilon = static_cast<A>(pass.epsilon),
                        .x_sum = pass.x_sum.data(),
                        .y = nullptr,
                        .mean = pass.mean.data(),
                        .rstd = pass.rstd.data(),
                        .width = width};
  parallel_rows(rows, width, [&](std::int64_t begin, std::int64_t end) {
    NormRows<A> part = all;
    if constexpr (is_half<T>) {
      FloatRow<T> residual(width);
      FloatRow<T> y(width);
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t place = row * width;  // pointers of kernels are to row 0
        part.x = all.x + place;
        if (pass.residual.defined()) {
          part.residual = residual.read(pass.residual.data() + place);
          part.x_sum = all.x_sum + place;
        }
        part.y = y.place(pass.y.data() + place);
        if (has_mean) part.mean = all.mean + row;
        part.rstd = all.rstd + row;
        kernels.forward(part, 0, 1);
        y.write(pass.y.data() + place);
      }
    } else {
      part.residual = pass.residual.data();
      part.y = pass.y.data();
      kernels.forward(part, begin, end);
    }
  });
}

template <>
template <typename T>
void Norms<Cpu>::backward(NormKind kind, const NormBackward<T, Cpu>& pass) {
  const bool has_mean = kind == NormKind::layer;
  const auto& kernels = passes<Accumulate<T>>(kind);
  const std::int64_t rows = pass.x.shape().rows();
  const std::int64_t width = pass.x.shape().back();
  using A = Accumulate<T>;
  const NormGradientRows<A> all{.x = pass.x.data(),
                                .weight = pass.weight.data(),
                                .mean = pass.mean.data(),
                                .rstd = pass.rstd.data(),
                                .dy = nullptr,
                                .dx = pass.dx.data(),
                                .accumulate_dx = pass.accumulate_dx,
                                .width = width};
  const auto run_rows = [&](std::int64_t begin, std::int64_t end, A* dweight, A* dbias) {
    NormGradientRows<A> part = all;
    if constexpr (is_half<T>) {
      FloatRow<T> dy(width);
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t place = row * width;
        part.x = all.x + place;
        if (has_mean) part.mean = all.mean + row;
        part.rstd = all.rstd + row;
        part.dy = dy.read(pass.dy.data() + place);
        part.dx = all.dx + place;
        kernels.backward(part, 0, 1, dweight, dbias);
        if (pass.dresidual.defined()) narrow(part.dx, pass.dresidual.data() + place, width);
      }
    } else {
      part.dy = pass.dy.data();
      kernels.backward(part, begin, end, dweight, dbias);
      if (pass.dresidual.defined())
        std::copy(all.dx + begin * width, all.dx + end * width, pass.dresidual.data() + begin * width);
    }
  };
  const std::int64_t parts = num_row_parts(rows);
  const auto dweights = Tensor<A, Cpu>::zeros({parts, width});
  const auto dbiases = Tensor<A, Cpu>::zeros({parts, has_mean ? width : 0});
  parallel_row_parts(rows, width, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    run_rows(begin, end, dweights.data() + part * width, dbiases.data() + part * dbiases.dim(1));
  });
  if (pass.dweight.defined()) {
    auto dweight = pass.dweight;
    sum_rows(dweights, dweight, pass.accumulate_dweight);
  }
  if (pass.dbias.defined()) {
    auto dbias = pass.dbias;
    sum_rows(dbiases, dbias, pass.accumulate_dbias);
  }
}

TRIREME_INSTANTIATE(FLOATS, layer_norm, Cpu)
TRIREME_INSTANTIATE(FLOATS, rms_norm, Cpu)
TRIREME_INSTANTIATE(FLOATS, layer_norm_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, rms_norm_backward, Cpu)

}  // namespace trireme::ops
