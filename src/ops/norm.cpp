#include "trireme/ops/norm.hpp"

#include "ops/check.hpp"
#include "ops/kernels/norm.hpp"
#include "ops/parallel.hpp"
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

// The rows are split into this many parts, whatever the number of threads; each adds up its own gradients of weight and bias.
std::int64_t num_parts(std::int64_t rows) { return std::clamp<std::int64_t>(rows / 64, 1, 32); }

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
  const LayerNormRows<T> all{.x = pass.x.data(),
                             .residual = data_or_null(pass.residual),
                             .weight = data_or_null(pass.weight),
                             .bias = data_or_null(pass.bias),
                             .epsilon = static_cast<T>(pass.epsilon),
                             .x_sum = pass.x_sum.data(),
                             .y = pass.y.data(),
                             .mean = pass.mean.data(),
                             .rstd = pass.rstd.data(),
                             .width = width};
  const auto& kernels = norm_kernels().of<T>();
  parallel_rows(rows, width, [&](std::int64_t begin, std::int64_t end) { kernels.layer_norm(all, begin, end); });
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

  const LayerNormGradientRows<T> all{.x = pass.x.data(),
                                     .weight = data_or_null(pass.weight),
                                     .mean = pass.mean.data(),
                                     .rstd = pass.rstd.data(),
                                     .dy = pass.dy.data(),
                                     .dx = pass.dx.data(),
                                     .accumulate_dx = pass.accumulate_dx,
                                     .width = width};
  const auto& kernels = norm_kernels().of<T>();
  const std::int64_t parts = num_parts(rows);
  const auto dweights = Tensor<T, D>::zeros({parts, width});
  const auto dbiases = Tensor<T, D>::zeros({parts, width});
  parallel_ranges(parts, 1, least_elements / std::max<std::int64_t>(rows * width / parts, 1),
                  [&](std::int64_t first, std::int64_t last) {
                    for (std::int64_t part = first; part < last; ++part) {
                      kernels.layer_norm_backward(all, rows * part / parts, rows * (part + 1) / parts,
                                                  dweights.data() + part * width, dbiases.data() + part * width);
                    }
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

template void layer_norm(const LayerNormForward<float, Cpu>&);
template void layer_norm(const LayerNormForward<double, Cpu>&);
template void layer_norm_backward(const LayerNormBackward<float, Cpu>&);
template void layer_norm_backward(const LayerNormBackward<double, Cpu>&);

}  // namespace trireme::ops
