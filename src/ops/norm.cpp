#include "trireme/ops/norm.hpp"

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/norm.hpp"
#include "ops/row_parts.hpp"
#include "trireme/ops/reduce.hpp"

namespace trireme::ops {
namespace {

template <typename T>
void require_vector(std::string_view op, std::string_view name, const Tensor<T, Cpu>& vector, std::int64_t count) {
  if (vector.defined()) require_count(op, name, vector.shape(), count);
}

template <typename A>
struct Norm {
  std::string_view op;
  const NormPasses<A>& kernels;
  bool has_mean;  // and a bias
};

template <typename T>
void forward(const Norm<Accumulate<T>>& norm, const NormForward<T, Cpu>& pass) {
  const Shape& shape = pass.x.shape();
  require(shape.size() > 0 && shape.back() > 0, "{}: x has shape {}; the last dim must not be empty", norm.op, shape);
  const std::int64_t rows = shape.rows();
  const std::int64_t width = shape.back();
  require_shape(norm.op, "y", pass.y.shape(), shape);
  if (norm.has_mean) require_count(norm.op, "mean", pass.mean.shape(), rows);
  require_count(norm.op, "rstd", pass.rstd.shape(), rows);
  require_vector(norm.op, "weight", pass.weight, width);
  require(norm.has_mean || !pass.bias.defined(), "{}: adds no bias, but one of shape {} is given", norm.op, pass.bias.shape());
  require_vector(norm.op, "bias", pass.bias, width);
  if (pass.residual.defined()) {
    require_shape(norm.op, "residual", pass.residual.shape(), shape);
    require_shape(norm.op, "x_sum", pass.x_sum.shape(), shape);
  }
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
        const std::int64_t place = row * width;  // kernels find row 0 at their pointers
        part.x = all.x + place;
        if (pass.residual.defined()) {
          part.residual = residual.read(pass.residual.data() + place);
          part.x_sum = all.x_sum + place;
        }
        part.y = y.place(pass.y.data() + place);
        if (norm.has_mean) part.mean = all.mean + row;
        part.rstd = all.rstd + row;
        norm.kernels.forward(part, 0, 1);
        y.write(pass.y.data() + place);
      }
    } else {
      part.residual = pass.residual.data();
      part.y = pass.y.data();
      norm.kernels.forward(part, begin, end);
    }
  });
}

template <typename T>
void backward(const Norm<Accumulate<T>>& norm, const NormBackward<T, Cpu>& pass) {
  const Shape& shape = pass.x.shape();
  const std::int64_t rows = shape.rows();
  const std::int64_t width = shape.back();
  require_shape(norm.op, "dy", pass.dy.shape(), shape);
  require_shape(norm.op, "dx", pass.dx.shape(), shape);
  if (norm.has_mean) require_count(norm.op, "mean", pass.mean.shape(), rows);
  require_count(norm.op, "rstd", pass.rstd.shape(), rows);
  require_vector(norm.op, "weight", pass.weight, width);
  require_vector(norm.op, "dweight", pass.dweight, width);
  require(norm.has_mean || !pass.dbias.defined(), "{}: has no bias, but dbias of shape {} is given", norm.op,
          pass.dbias.shape());
  require_vector(norm.op, "dbias", pass.dbias, width);
  if (pass.dresidual.defined()) require_shape(norm.op, "dresidual", pass.dresidual.shape(), shape);

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
        if (norm.has_mean) part.mean = all.mean + row;
        part.rstd = all.rstd + row;
        part.dy = dy.read(pass.dy.data() + place);
        part.dx = all.dx + place;
        norm.kernels.backward(part, 0, 1, dweight, dbias);
        if (pass.dresidual.defined()) narrow(part.dx, pass.dresidual.data() + place, width);
      }
    } else {
      part.dy = pass.dy.data();
      norm.kernels.backward(part, begin, end, dweight, dbias);
      if (pass.dresidual.defined())
        std::copy(all.dx + begin * width, all.dx + end * width, pass.dresidual.data() + begin * width);
    }
  };
  const std::int64_t parts = num_row_parts(rows);
  const auto dweights = Tensor<A, Cpu>::zeros({parts, width});
  const auto dbiases = Tensor<A, Cpu>::zeros({parts, norm.has_mean ? width : 0});
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

}  // namespace

template <typename T, typename D>
void layer_norm(const NormForward<T, D>& pass) {
  forward<T>({"layer_norm", norm_kernels().of<Accumulate<T>>().layer_norm, true}, pass);
}
template <typename T, typename D>
void rms_norm(const NormForward<T, D>& pass) {
  forward<T>({"rms_norm", norm_kernels().of<Accumulate<T>>().rms_norm, false}, pass);
}
template <typename T, typename D>
void layer_norm_backward(const NormBackward<T, D>& pass) {
  backward<T>({"layer_norm_backward", norm_kernels().of<Accumulate<T>>().layer_norm, true}, pass);
}
template <typename T, typename D>
void rms_norm_backward(const NormBackward<T, D>& pass) {
  backward<T>({"rms_norm_backward", norm_kernels().of<Accumulate<T>>().rms_norm, false}, pass);
}

#define TRIREME_INSTANTIATE(T)                                    \
  template void layer_norm(const NormForward<T, Cpu>&);           \
  template void rms_norm(const NormForward<T, Cpu>&);             \
  template void layer_norm_backward(const NormBackward<T, Cpu>&); \
  template void rms_norm_backward(const NormBackward<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
