#pragma once

#include "ops/base/check.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/array.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"
#include "trireme/ops/matmul/einsum_plan.hpp"
#include "trireme/ops/matmul/product_shapes.hpp"
#include "trireme/ops/matmul/products.hpp"
#include "trireme/ops/reduce/reductions.hpp"

// The operations of ops/matmul/products.hpp for any device, composed of other operations.
namespace trireme {

template <typename T, typename D>
Tensor<T, D> matmul(const Tensor<T, D>& a, const Tensor<T, D>& b) {
  ops::require_defined("matmul", "a", a);
  ops::require_defined("matmul", "b", b);
  const ops::ProductShapes shapes = ops::product_shapes(a.shape(), b.shape());
  Tensor<T, D> c(shapes.batch);
  ops::batched_matmul(a.reshape(shapes.a), b.reshape(shapes.b), c);
  return c.reshape(shapes.result);
}

template <typename T, typename D>
Tensor<T, D> outer(const Tensor<T, D>& a, const Tensor<T, D>& b) {
  ops::require_defined("outer", "a", a);
  ops::require_defined("outer", "b", b);
  ops::require_vectors("outer", a.shape(), b.shape());
  return matmul(a.reshape({a.numel(), 1}), b.reshape({1, b.numel()}));
}

template <typename T, typename D>
Tensor<T, D> dot(const Tensor<T, D>& a, const Tensor<T, D>& b) {
  ops::require_defined("dot", "a", a);
  ops::require_defined("dot", "b", b);
  ops::require_vectors("dot", a.shape(), b.shape());
  return matmul(a, b);
}

namespace ops {

template <typename T, typename D>
struct EinsumOfTensors {
  static Tensor<T, D> sum(const Tensor<T, D>& x, const Dims& dims) { return trireme::sum(x, dims); }
  static Tensor<T, D> reshape(const Tensor<T, D>& x, const Shape& shape) { return x.reshape(shape); }
  static Tensor<T, D> permute(const Tensor<T, D>& x, const std::vector<int>& order) { return trireme::permute(x, order); }
  static Tensor<T, D> multiply(const Tensor<T, D>& a, const Tensor<T, D>& b) { return trireme::matmul(a, b); }
};

}  // namespace ops

template <typename T, typename D>
Tensor<T, D> einsum(std::string_view equation, const Tensor<T, D>& a, const Tensor<T, D>& b) {
  ops::require_defined("einsum", "a", a);
  ops::require_defined("einsum", "b", b);
  return ops::run_einsum<Tensor<T, D>>(ops::einsum_plan(equation, {a.shape(), b.shape()}), {a, b},
                                       ops::EinsumOfTensors<T, D>());
}

template <typename T, typename D>
Tensor<T, D> einsum(std::string_view equation, const Tensor<T, D>& x) {
  ops::require_defined("einsum", "x", x);
  return ops::run_einsum<Tensor<T, D>>(ops::einsum_plan(equation, {x.shape()}), {x}, ops::EinsumOfTensors<T, D>());
}

#define TRIREME_EINSUMS(T, D)                                                               \
  template Tensor<T, D> einsum(std::string_view, const Tensor<T, D>&, const Tensor<T, D>&); \
  template Tensor<T, D> einsum(std::string_view, const Tensor<T, D>&);

}  // namespace trireme
