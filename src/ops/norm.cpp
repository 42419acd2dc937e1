#include "trireme/ops/norm.hpp"

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/kernels/norm.hpp"
#include "ops/row_parts.hpp"
#include "trireme/ops/reduce.hpp"

namespace trireme::ops {
namespace {

template <typename T>
const T* data_or_null(const Tensor<T, Cpu>& tensor) {
  return tensor.defined() ? tensor.data() : nullptr;
}

template <typename T>
void require_vector(std::string_view op, std::string_view name, const Tensor<T, Cpu>& vector, std::int64_t count) {
  if (vector.defined()) require_count(op, name, vector.shape(), count);
}

}  // namespace

template <typename T, typename D>
void layer_norm(const LayerNormForward<T, D>& pass) {
  const Shape& shape = pass.x.shape();
  const std::int64_t rows = shape.rows();
  const std::int64_t width = shape.back();
  require(width > 0, "layer_norm: x has shape {}; the last dim must not be empty", shape);
  require_shape("layer_norm", "y", pass.y.shape(), shape);
  require_count("layer_norm", "mean", pass.mean.shape(), rows);
  require_count("layer_norm", "rstd", pass.rstd.shape(), rows);
  require_vector("layer_norm", "weight", pass.weight, width);
  require_vector("layer_norm", "bias", pass.bias, width);
  if (pass.residual.defined()) {
    require_shape("layer_norm", "residual", pass.residual.shape(), shape);
    require_shape("layer_norm", "x_sum", pass.x_sum.shape(), shape);
  }
  using A = Accumulate<T>;
  const LayerNormRows<A> all{.x = pass.x.data(),
                             .residual = nullptr,
                             .weight = data_or_null(pass.weight),
                             .bias = data_or_null(pass.bias),
                             .epsilon = static_cast<A>(pass.epsilon),
                             .x_sum = pass.x_sum.data(),
                             .y = nullptr,
                             .mean = pass.mean.data(),
                             .rstd = pass.rstd.data(),
                             .width = width};
  const auto& kernels = norm_kernels().of<A>();
  parallel_rows(rows, width, [&](std::int64_t begin, std::int64_t end) {
    LayerNormRows<A> part = all;
    if constexpr (is_half<T>) {
      FloatRow<T> residual(width);
      FloatRow<T> y(width);
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t place = row * width;  // kernels find row 0 at their pointers
        part.x = all.x + place;
        part.x_sum = all.x_sum + place;
        if (pass.residual.defined()) part.residual = residual.read(pass.residual.data() + place);
        part.y = y.place(pass.y.data() + place);
        part.mean = all.mean + row;
        part.rstd = all.rstd + row;
        kernels.layer_norm(part, 0, 1);
        y.write(pass.y.data() + place);
      }
    } else {
      part.residual = data_or_null(pass.residual);
      part.y = pass.y.data();
      kernels.layer_norm(part, begin, end);
    }
  });
}

template <typename T, typename D>
void layer_norm_backward(const LayerNormBackward<T, D>& pass) {
  const Shape& shape = pass.x.shape();
  const std::int64_t rows = shape.rows();
  const std::int64_t width = shape.back();
  require_shape("layer_norm_backward", "dy", pass.dy.shape(), shape);
  require_shape("layer_norm_backward", "dx", pass.dx.shape(), shape);
  require_count("layer_norm_backward", "mean", pass.mean.shape(), rows);
  require_count("layer_norm_backward", "rstd", pass.rstd.shape(), rows);
  require_vector("layer_norm_backward", "weight", pass.weight, width);
  require_vector("layer_norm_backward", "dweight", pass.dweight, width);
  require_vector("layer_norm_backward", "dbias", pass.dbias, width);

  if (pass.dresidual.defined()) require_shape("layer_norm_backward", "dresidual", pass.dresidual.shape(), shape);

  using A = Accumulate<T>;
  const LayerNormGradientRows<A> all{.x = pass.x.data(),
                                     .weight = data_or_null(pass.weight),
                                     .mean = pass.mean.data(),
                                     .rstd = pass.rstd.data(),
                                     .dy = nullptr,
                                     .dx = pass.dx.data(),
                                     .accumulate_dx = pass.accumulate_dx,
                                     .width = width};
  const auto& kernels = norm_kernels().of<A>();
  const auto run_rows = [&](std::int64_t begin, std::int64_t end, A* dweight, A* dbias) {
    LayerNormGradientRows<A> part = all;
    if constexpr (is_half<T>) {
      FloatRow<T> dy(width);
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t place = row * width;
        part.x = all.x + place;
        part.mean = all.mean + row;
        part.rstd = all.rstd + row;
        part.dy = dy.read(pass.dy.data() + place);
        part.dx = all.dx + place;
        kernels.layer_norm_backward(part, 0, 1, dweight, dbias);
        if (pass.dresidual.defined()) narrow(part.dx, pass.dresidual.data() + place, width);
      }
    } else {
      part.dy = pass.dy.data();
      kernels.layer_norm_backward(part, begin, end, dweight, dbias);
      if (pass.dresidual.defined())
        std::copy(all.dx + begin * width, all.dx + end * width, pass.dresidual.data() + begin * width);
    }
  };
  const std::int64_t parts = num_row_parts(rows);
  const auto dweights = Tensor<A, D>::zeros({parts, width});
  const auto dbiases = Tensor<A, D>::zeros({parts, width});
  parallel_row_parts(rows, width, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    run_rows(begin, end, dweights.data() + part * width, dbiases.data() + part * width);
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

#define TRIREME_INSTANTIATE(T)                               \
  template void layer_norm(const LayerNormForward<T, Cpu>&); \
  template void layer_norm_backward(const LayerNormBackward<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
