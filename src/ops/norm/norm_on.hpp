#pragma once

#include "ops/base/check.hpp"
#include "trireme/ops/norm/norm.hpp"

// The operations of ops/norm/norm.hpp for any device: Norms<D> does the work.
namespace trireme::ops {

enum class NormKind : std::uint8_t { layer, rms };  // only the layer norm has a mean and a bias

template <typename D>
struct Norms {
  template <typename T>
  static void forward(NormKind kind, const NormForward<T, D>& pass);
  template <typename T>
  static void backward(NormKind kind, const NormBackward<T, D>& pass);
};

namespace norm {

template <typename T, typename D>
void require_vector(std::string_view op, std::string_view name, const Tensor<T, D>& vector, std::int64_t count) {
  if (vector.defined()) require_count(op, name, vector.shape(), count);
}

template <typename T, typename D>
void forward(std::string_view op, NormKind kind, const NormForward<T, D>& pass) {
  const bool has_mean = kind == NormKind::layer;
  const Shape& shape = pass.x.shape();
  require(shape.size() > 0 && shape.back() > 0, "{}: x has shape {}; the last dim must not be empty", op, shape);
  require_shape(op, "y", pass.y, shape);
  if (has_mean) require_count(op, "mean", pass.mean, shape.rows());
  require_count(op, "rstd", pass.rstd, shape.rows());
  require_vector(op, "weight", pass.weight, shape.back());
  require(has_mean || !pass.bias.defined(), "{}: adds no bias, but one of shape {} is given", op, pass.bias.shape());
  require_vector(op, "bias", pass.bias, shape.back());
  if (pass.residual.defined()) {
    require_shape(op, "residual", pass.residual, shape);
    require_shape(op, "x_sum", pass.x_sum, shape);
  }
  Norms<D>::forward(kind, pass);
}

template <typename T, typename D>
void backward(std::string_view op, NormKind kind, const NormBackward<T, D>& pass) {
  const bool has_mean = kind == NormKind::layer;
  const Shape& shape = pass.x.shape();
  require_shape(op, "dy", pass.dy, shape);
  require_shape(op, "dx", pass.dx, shape);
  if (has_mean) require_count(op, "mean", pass.mean, shape.rows());
  require_count(op, "rstd", pass.rstd, shape.rows());
  require_vector(op, "weight", pass.weight, shape.back());
  require_vector(op, "dweight", pass.dweight, shape.back());
  require(has_mean || !pass.dbias.defined(), "{}: has no bias, but dbias of shape {} is given", op, pass.dbias.shape());
  require_vector(op, "dbias", pass.dbias, shape.back());
  if (pass.dresidual.defined()) require_shape(op, "dresidual", pass.dresidual, shape);
  Norms<D>::backward(kind, pass);
}

}  // namespace norm

template <typename T, typename D>
void layer_norm(const NormForward<T, D>& pass) {
  norm::forward("layer_norm", NormKind::layer, pass);
}
template <typename T, typename D>
void rms_norm(const NormForward<T, D>& pass) {
  norm::forward("rms_norm", NormKind::rms, pass);
}
template <typename T, typename D>
void layer_norm_backward(const NormBackward<T, D>& pass) {
  norm::backward("layer_norm_backward", NormKind::layer, pass);
}
template <typename T, typename D>
void rms_norm_backward(const NormBackward<T, D>& pass) {
  norm::backward("rms_norm_backward", NormKind::rms, pass);
}

}  // namespace trireme::ops
