#include "trireme/ops/rms_norm.hpp"

#include "ops/check.hpp"
#include "ops/kernels/rms_norm.hpp"
#include "ops/row_parts.hpp"
#include "trireme/ops/reduce.hpp"

namespace trireme::ops {

template <typename T, typename D>
void rms_norm(const RmsNormForward<T, D>& pass) {
  const Shape& shape = pass.x.shape();
  require(shape.size() > 0 && shape.back() > 0, "rms_norm: x has shape {}; the last dim must not be empty", shape);
  require_shape("rms_norm", "y", pass.y.shape(), shape);
  require_count("rms_norm", "rstd", pass.rstd.shape(), shape.rows());
  if (pass.weight.defined()) require_count("rms_norm", "weight", pass.weight.shape(), shape.back());
  if (pass.residual.defined()) {
    require_shape("rms_norm", "residual", pass.residual.shape(), shape);
    require_shape("rms_norm", "x_sum", pass.x_sum.shape(), shape);
  }
  const RmsNormRows<T> all{.x = pass.x.data(),
                           .residual = pass.residual.data(),
                           .weight = pass.weight.data(),
                           .epsilon = static_cast<T>(pass.epsilon),
                           .x_sum = pass.x_sum.data(),
                           .y = pass.y.data(),
                           .rstd = pass.rstd.data(),
                           .width = shape.back()};
  const auto& kernels = rms_norm_kernels().of<T>();
  parallel_rows(shape.rows(), shape.back(), [&](std::int64_t begin, std::int64_t end) { kernels.rms_norm(all, begin, end); });
}

template <typename T, typename D>
void rms_norm_backward(const RmsNormBackward<T, D>& pass) {
  const Shape& shape = pass.x.shape();
  const std::int64_t rows = shape.rows();
  const std::int64_t width = shape.back();
  require_shape("rms_norm_backward", "dy", pass.dy.shape(), shape);
  require_shape("rms_norm_backward", "dx", pass.dx.shape(), shape);
  require_count("rms_norm_backward", "rstd", pass.rstd.shape(), rows);
  if (pass.weight.defined()) require_count("rms_norm_backward", "weight", pass.weight.shape(), width);
  const RmsNormGradientRows<T> all{.x = pass.x.data(),
                                   .weight = pass.weight.data(),
                                   .rstd = pass.rstd.data(),
                                   .dy = pass.dy.data(),
                                   .dx = pass.dx.data(),
                                   .accumulate_dx = pass.accumulate_dx,
                                   .width = width};
  const auto& kernels = rms_norm_kernels().of<T>();
  const auto dweights = Tensor<T, D>::zeros({num_row_parts(rows), width});
  parallel_row_parts(rows, width, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    kernels.rms_norm_backward(all, begin, end, dweights.data() + part * width);
  });
  if (!pass.dweight.defined()) return;
  require_count("rms_norm_backward", "dweight", pass.dweight.shape(), width);
  auto dweight = pass.dweight;
  sum_rows(dweights, dweight, pass.accumulate_dweight);
}

template void rms_norm(const RmsNormForward<float, Cpu>&);
template void rms_norm(const RmsNormForward<double, Cpu>&);
template void rms_norm_backward(const RmsNormBackward<float, Cpu>&);
template void rms_norm_backward(const RmsNormBackward<double, Cpu>&);

}  // namespace trireme::ops
