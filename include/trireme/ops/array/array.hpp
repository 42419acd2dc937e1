#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/array/create.hpp"
#include "trireme/ops/array/joining.hpp"
#include "trireme/ops/array/movement.hpp"
#include "trireme/ops/array/triangle.hpp"
#include "trireme/tensor/tensor.hpp"

// Functions that reorder, join, cut and repeat elements. Negative dims count from the end. Tensors are contiguous, so only
// these functions return views:
// - squeeze, unsqueeze and flatten, for any extents;
// - select, slice, narrow, split and chunk along dim 0 with step 1.
// All other functions return copies, including expand. T: float, double, bfloat16, float16, std::int32_t, std::int64_t, bool.
namespace trireme TRIREME_EXPORT {
namespace ops {

template <typename T, typename D>
const Shape& defined_shape(std::string_view op, const Tensor<T, D>& x, std::string_view name = "x") {
  require(x.defined(), "{}: {} is undefined", op, name);
  return x.shape();
}

template <typename T, typename D>
std::vector<Shape> defined_shapes(std::string_view op, const std::vector<Tensor<T, D>>& xs) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    require(xs[i].defined(), "{}: tensor {} is undefined", op, i);
    shapes.push_back(xs[i].shape());
  }
  return shapes;
}

template <typename T, typename D>
Tensor<T, D> moved(const Tensor<T, D>& x, const Movement& movement) {
  Tensor<T, D> y(movement.to);
  move_elements(movement, x, y);
  return y;
}

// A copy of x in which `source` replaces the part.
template <typename T, typename D>
Tensor<T, D> with_part(const Tensor<T, D>& x, const Movement& part, const Tensor<T, D>& source) {
  require_part(part, defined_shape("slice_scatter", source, "source"));
  Tensor<T, D> y = x.clone();
  replace_part(part, source, y);
  return y;
}

template <typename T, typename D>
Tensor<T, D> joined_tensors(const std::vector<Tensor<T, D>>& xs, const Joining& joining) {
  Tensor<T, D> y(joining.to);
  join(joining, xs, y);
  return y;
}

// A slice along a dim: a view along dim 0 with step 1, otherwise a copy.
template <typename X>
X part_of(std::string_view op, const X& x, int dim, const Slice& slice) {
  const int place = dim_of(op, x.shape(), dim);
  const auto [first, count] = slice_of(op, x.shape()[place], slice);
  return place == 0 && slice.step == 1 ? x.narrow(first, count) : moved(x, sliced(op, x.shape(), dim, slice));
}

template <std::size_t n, typename X>
std::array<X, n> parts_of(const Shape& x, int dim, std::vector<X> parts) {
  require(parts.size() == n, "chunk: dim {} of x {} gives {} parts, not {}", dim, x, parts.size(), n);
  std::array<X, n> all;
  std::move(parts.begin(), parts.end(), all.begin());
  return all;
}

// The index of select(), counted from the start of the dim.
inline std::int64_t selected(const Shape& x, int dim, std::int64_t index) {
  require(index >= -x[dim] && index < x[dim], "select: index {} lies outside dim {} of x {}", index, dim, x);
  return index < 0 ? index + x[dim] : index;
}

template <typename T, typename D>
Tensor<T, D> triangle_of(std::string_view op, Triangle triangle, const Tensor<T, D>& x, std::int64_t diagonal) {
  Tensor<T, D> y(defined_shape(op, x));
  take_triangle(triangle, x, diagonal, y);
  return y;
}

}  // namespace ops

// cat({a, b}, 1) concatenates tensors along a dim; all other dims must have equal extents. stack() joins tensors of one shape
// along a new dim.
template <typename T, typename D>
Tensor<T, D> cat(const std::vector<Tensor<T, D>>& xs, int dim = 0) {
  return ops::joined_tensors(xs, ops::joined(ops::defined_shapes("cat", xs), dim));
}
template <typename T, typename D>
Tensor<T, D> cat(std::initializer_list<Tensor<T, D>> xs, int dim = 0) {
  return cat(std::vector(xs), dim);
}
template <typename T, typename D>
Tensor<T, D> stack(const std::vector<Tensor<T, D>>& xs, int dim = 0) {
  return ops::joined_tensors(xs, ops::stacked(ops::defined_shapes("stack", xs), dim));
}
template <typename T, typename D>
Tensor<T, D> stack(std::initializer_list<Tensor<T, D>> xs, int dim = 0) {
  return stack(std::vector(xs), dim);
}

// x[begin:end:step] along a dim, as in Python; a step below 1 is an error. Along dim 0 with step 1 the result is a view,
// otherwise a copy.
template <typename T, typename D>
Tensor<T, D> slice(const Tensor<T, D>& x, int dim, std::int64_t begin, std::int64_t end = Slice::to_end,
                   std::int64_t step = 1) {
  ops::defined_shape("slice", x);
  return ops::part_of("slice", x, dim, {begin, end, step});
}

// Copies a slice along each of the first dims: slice(x, {{1, 3}, {}, {0, -1, 2}}) is x[1:3, :, 0:-1:2].
template <typename T, typename D>
Tensor<T, D> slice(const Tensor<T, D>& x, const std::vector<Slice>& slices) {
  return ops::moved(x, ops::sliced("slice", ops::defined_shape("slice", x), slices));
}

// A copy of x in which `source` replaces slice(x, dim, begin, end, step), or slice(x, slices). source has the shape of that
// slice.
template <typename T, typename D>
Tensor<T, D> slice_scatter(const Tensor<T, D>& x, const Tensor<T, D>& source, int dim, std::int64_t begin,
                           std::int64_t end = Slice::to_end, std::int64_t step = 1) {
  const Shape& shape = ops::defined_shape("slice_scatter", x);
  return ops::with_part(x, ops::sliced("slice_scatter", shape, dim, {begin, end, step}), source);
}
template <typename T, typename D>
Tensor<T, D> slice_scatter(const Tensor<T, D>& x, const Tensor<T, D>& source, const std::vector<Slice>& slices) {
  return ops::with_part(x, ops::sliced("slice_scatter", ops::defined_shape("slice_scatter", x), slices), source);
}

// `length` elements along a dim, from `start` on. It is an error if these elements reach beyond the dim. Along dim 0 the
// result is a view, otherwise a copy.
template <typename T, typename D>
Tensor<T, D> narrow(const Tensor<T, D>& x, int dim, std::int64_t start, std::int64_t length) {
  return ops::part_of("narrow", x, dim, ops::narrowed(ops::defined_shape("narrow", x), dim, start, length));
}

// split() cuts a dim into parts of the given sizes, or into parts of `size` elements. chunk() cuts a dim into at most `chunks`
// parts of equal size, as in torch. The last part may be smaller. Parts along dim 0 are views; other parts are copies.
template <typename T, typename D>
std::vector<Tensor<T, D>> split(const Tensor<T, D>& x, const std::vector<std::int64_t>& sizes, int dim = 0) {
  const Shape& shape = ops::defined_shape("split", x);
  ops::require_sizes(shape[ops::dim_of("split", shape, dim)], sizes);
  std::vector<Tensor<T, D>> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(ops::part_of("split", x, dim, {begin, begin + size}));
    begin += size;
  }
  return parts;
}
template <typename T, typename D>
std::vector<Tensor<T, D>> split(const Tensor<T, D>& x, std::int64_t size, int dim = 0) {
  const Shape& shape = ops::defined_shape("split", x);
  return split(x, ops::split_sizes(shape[ops::dim_of("split", shape, dim)], size), dim);
}
template <typename T, typename D>
std::vector<Tensor<T, D>> chunk(const Tensor<T, D>& x, std::int64_t chunks, int dim = 0) {
  const Shape& shape = ops::defined_shape("chunk", x);
  return split(x, ops::chunk_sizes(shape[ops::dim_of("chunk", shape, dim)], chunks), dim);
}

// Exactly n parts: const auto [mean, log_variance] = chunk<2>(x, -1). It is an error if chunk(x, n, dim) gives fewer parts.
template <std::size_t n, typename T, typename D>
std::array<Tensor<T, D>, n> chunk(const Tensor<T, D>& x, int dim = 0) {
  return ops::parts_of<n>(x.defined() ? x.shape() : Shape(), dim, chunk(x, n, dim));
}

// transpose() exchanges two dims. permute() reorders all dims: dim i of the result is dim dims[i] of x.
template <typename T, typename D>
Tensor<T, D> transpose(const Tensor<T, D>& x, int first, int second) {
  return ops::moved(x, ops::transposed(ops::defined_shape("transpose", x), first, second));
}
template <typename T, typename D>
Tensor<T, D> permute(const Tensor<T, D>& x, const std::vector<int>& dims) {
  return ops::moved(x, ops::permuted(ops::defined_shape("permute", x), dims));
}

// Repeats x along dims of extent 1, and along new dims in front, until it has `shape`: [3, 1] -> [2, 3, 4].
template <typename T, typename D>
Tensor<T, D> expand(const Tensor<T, D>& x, const Shape& shape) {
  return ops::moved(x, ops::expanded(ops::defined_shape("expand", x), shape));
}

// Makes times[i] copies of x along dim i: [2, 3] with times {2, 1} -> [4, 3]. If `times` has more numbers than x has dims, the
// result has new dims in front.
template <typename T, typename D>
Tensor<T, D> repeat(const Tensor<T, D>& x, const std::vector<std::int64_t>& times) {
  return ops::moved(x, ops::repeated(ops::defined_shape("repeat", x), times));
}

// Moves elements by `shift` places along a dim. Elements that move beyond the end of the dim come back at its start. A
// negative shift moves in the other direction.
template <typename T, typename D>
Tensor<T, D> roll(const Tensor<T, D>& x, const std::vector<std::int64_t>& shifts, const std::vector<int>& dims) {
  return ops::moved(x, ops::rolled(ops::defined_shape("roll", x), shifts, dims));
}
template <typename T, typename D>
Tensor<T, D> roll(const Tensor<T, D>& x, std::int64_t shift, int dim) {
  return roll(x, std::vector{shift}, std::vector{dim});
}

// Reverses the elements along each of the dims.
template <typename T, typename D>
Tensor<T, D> flip(const Tensor<T, D>& x, const std::vector<int>& dims) {
  return ops::moved(x, ops::flipped(ops::defined_shape("flip", x), dims));
}

// Windows of `size` elements along a dim, `step` elements apart, as in torch.Tensor.unfold. The dim becomes the number of
// windows, and a new last dim has the elements of each window. Along dim 1: [batch, time, width] -> [batch, windows, width,
// size].
template <typename T, typename D>
Tensor<T, D> unfold(const Tensor<T, D>& x, int dim, std::int64_t size, std::int64_t step) {
  return ops::moved(x, ops::unfolded(ops::defined_shape("unfold", x), dim, size, step));
}

// Adds elements around x. As in torch, the amounts are pairs (before, after), the pair of the last dim first: {1, 2} adds a
// column on the left and two on the right, {1, 2, 0, 3} also adds three rows below. With PadMode::constant a negative amount
// removes elements; with PadMode::reflect amounts must be smaller than the dim's extent.
template <typename T, typename D>
Tensor<T, D> pad(const Tensor<T, D>& x, const std::vector<std::int64_t>& amounts, const PadOptions& options = {}) {
  return ops::moved(x, ops::padded(ops::defined_shape("pad", x), amounts, options));
}

// The upper or lower triangle of matrices [..., rows, columns], 0 elsewhere. The triangle includes the diagonal that lies
// `diagonal` columns to the right of the main diagonal.
template <typename T, typename D>
Tensor<T, D> triu(const Tensor<T, D>& x, std::int64_t diagonal = 0) {
  return ops::triangle_of("triu", ops::Triangle::upper, x, diagonal);
}
template <typename T, typename D>
Tensor<T, D> tril(const Tensor<T, D>& x, std::int64_t diagonal = 0) {
  return ops::triangle_of("tril", ops::Triangle::lower, x, diagonal);
}

// The following functions return views. squeeze(x) removes all dims of extent 1; squeeze(x, dim) removes `dim` if its extent
// is 1. unsqueeze() inserts a dim of extent 1 before `dim`, or, for -1, as the last dim. flatten() merges the dims from
// start_dim to end_dim, both included.
template <typename T, typename D>
Tensor<T, D> squeeze(const Tensor<T, D>& x) {
  return x.reshape(ops::squeezed_shape(ops::defined_shape("squeeze", x)));
}
template <typename T, typename D>
Tensor<T, D> squeeze(const Tensor<T, D>& x, int dim) {
  return x.reshape(ops::squeezed_shape(ops::defined_shape("squeeze", x), dim));
}
template <typename T, typename D>
Tensor<T, D> unsqueeze(const Tensor<T, D>& x, int dim) {
  return x.reshape(ops::unsqueezed_shape(ops::defined_shape("unsqueeze", x), dim));
}

// The elements at one index of a dim, without this dim: select(x, 1, 0) is x[:, 0]. A negative index counts from the end.
// Along dim 0 the result is a view, otherwise a copy.
template <typename T, typename D>
Tensor<T, D> select(const Tensor<T, D>& x, int dim, std::int64_t index) {
  const Shape& shape = ops::defined_shape("select", x);
  const int place = ops::dim_of("select", shape, dim);
  return squeeze(narrow(x, place, ops::selected(shape, place, index), 1), place);
}
template <typename T, typename D>
Tensor<T, D> flatten(const Tensor<T, D>& x, int start_dim = 0, int end_dim = -1) {
  return x.reshape(ops::flattened_shape(ops::defined_shape("flatten", x), start_dim, end_dim));
}

}  // namespace trireme
