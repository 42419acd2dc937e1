#pragma once

#include <algorithm>

#include "ops/array/line_body.hpp"
#include "ops/array/triangle_body.hpp"
#include "ops/base/check.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/array/copy_strided.hpp"
#include "trireme/ops/array/triangle.hpp"

// Triangles and new tensors for any device: Creates<D> does the work.
namespace trireme::ops {

template <typename D>
struct Creates {
  // Matrices of elements of 1, 2, 4 or 8 bytes; `count` of these elements.
  static void triangle(const TriangleSizes& sizes, int element_bytes, std::int64_t count, const void* x, void* y);
  template <typename T>
  static void line(const FillLine<T>& body);
};

template <typename T, typename D>
void take_triangle(Triangle triangle, const Tensor<T, D>& x, std::int64_t diagonal, Tensor<T, D>& y) {
  const std::string_view op = triangle == Triangle::upper ? "triu" : "tril";
  require_defined(op, "x", x);
  require(x.shape().size() >= 2, "{}: x {} has no rows and columns", op, x.shape());
  require_shape(op, "y", y, x.shape());
  if (x.numel() == 0) return;
  const TriangleSizes sizes{.upper = triangle == Triangle::upper,
                            .rows = x.dim(-2),
                            .columns = x.dim(-1),
                            .diagonal = std::clamp(diagonal, -x.dim(-2), x.dim(-1))};
  Creates<D>::triangle(sizes, sizeof(T), x.numel(), x.data(), y.data());
}

template <typename T, typename D>
void fill_line(const Line& line, Tensor<T, D>& y) {
  require_defined("fill_line", "y", y);
  y.count_change();
  Creates<D>::line(FillLine<T>{line, y.numel(), y.data()});
}

template <typename T, typename D>
void fill_eye(Tensor<T, D>& y) {
  require(y.shape().size() == 2, "eye: y {} is not [rows, columns]", y.shape());
  y = Tensor<T, D>::zeros(y.shape());
  StridedCopy diagonal;
  diagonal.add({.extent = std::min(y.dim(0), y.dim(1)), .from = 0, .to = y.dim(1) + 1});
  copy_strided(diagonal, Tensor<T, D>::full({}, static_cast<T>(1.0f)), y);
}

}  // namespace trireme::ops
