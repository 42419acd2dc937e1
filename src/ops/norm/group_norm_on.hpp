#pragma once

#include <string_view>

#include "ops/base/check.hpp"
#include "ops/norm/group_norm_sizes.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/norm/group_norm.hpp"

// The operations of ops/norm/group_norm.hpp for any device: GroupNorm<D> does the work.
namespace trireme::ops {

template <typename D>
struct GroupNorm {
  template <typename T>
  static void forward(const GroupNormSizes& sizes, const GroupNormForward<T, D>& pass);
  template <typename T>
  static void backward(const GroupNormSizes& sizes, const GroupNormBackward<T, D>& pass);
};

template <typename Pass>
GroupNormSizes group_norm_sizes(std::string_view op, const Pass& pass) {
  const Shape& shape = pass.x.shape();
  require(shape.size() >= 2 && pass.groups > 0 && shape.back() > 0 && shape.back() % pass.groups == 0,
          "{}: x {} is not [batch, ..., channels] with channels that {} groups divide", op, shape, pass.groups);
  const std::int64_t batch = shape[0];
  require_count(op, "mean", pass.mean, batch * pass.groups);
  require_count(op, "rstd", pass.rstd, batch * pass.groups);
  if (pass.weight.defined()) require_count(op, "weight", pass.weight, shape.back());
  return {.batch = batch, .rows = batch == 0 ? 0 : shape.rows() / batch, .channels = shape.back(), .groups = pass.groups};
}

template <typename T, typename D>
void group_norm(const GroupNormForward<T, D>& pass) {
  const auto sizes = group_norm_sizes("group_norm", pass);
  require_shape("group_norm", "y", pass.y, pass.x.shape());
  if (pass.bias.defined()) require_count("group_norm", "bias", pass.bias, sizes.channels);
  GroupNorm<D>::forward(sizes, pass);
}

template <typename T, typename D>
void group_norm_backward(const GroupNormBackward<T, D>& pass) {
  constexpr std::string_view op = "group_norm_backward";
  const auto sizes = group_norm_sizes(op, pass);
  require_shape(op, "dy", pass.dy, pass.x.shape());
  require_shape(op, "dx", pass.dx, pass.x.shape());
  if (pass.dweight.defined()) require_count(op, "dweight", pass.dweight, sizes.channels);
  if (pass.dbias.defined()) require_count(op, "dbias", pass.dbias, sizes.channels);
  GroupNorm<D>::backward(sizes, pass);
}

}  // namespace trireme::ops
