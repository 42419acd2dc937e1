#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "trireme/autograd/operands.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/array/array.hpp"
#include "trireme/ops/base/extent2d.hpp"

// The functions of ops/array/array.hpp on Variables, with the same arguments and results. Functions that return views of
// Tensors also return views here. T: float, double, bfloat16, float16.
namespace trireme TRIREME_EXPORT {
namespace detail {

template <typename T, typename D>
const Shape& defined_shape(std::string_view function, const Variable<T, D>& x) {
  require_operands(function, x);
  return x.shape();
}

template <typename T, typename D>
std::vector<Shape> defined_shapes(std::string_view function, const std::vector<Variable<T, D>>& xs) {
  require_operands(function, xs);
  std::vector<Shape> shapes;
  for (const Variable<T, D>& x : xs) shapes.push_back(x.shape());
  return shapes;
}

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> record_movement(const Variable<T, D>& x, ops::Movement movement);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> record_slice(std::string_view function, const Variable<T, D>& x, int dim, const Slice& slice);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> record_replacement(const Variable<T, D>& x, const Variable<T, D>& source, ops::Movement part);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> record_joining(const std::vector<Variable<T, D>>& xs, const ops::Joining& joining);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> record_triangle(ops::Triangle triangle, const Variable<T, D>& x, std::int64_t diagonal);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> record_view(std::string_view function, const Variable<T, D>& x, const Shape& shape);

}  // namespace detail

// The same elements under another shape. reshape(x, {-1, 4}) computes the dim of -1 from the others.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> reshape(const Variable<T, D>& x, const Shape& shape);
template <typename T, typename D>
Variable<T, D> reshape(const Variable<T, D>& x, std::initializer_list<std::int64_t> dims) {
  require_operands("reshape", x);
  return reshape(x, shape_for(x.value().numel(), dims));
}

// A copy with two dims exchanged; negative dims count from the end.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> transpose(const Variable<T, D>& x, int first, int second);

template <typename T, typename D>
Variable<T, D> cat(const std::vector<Variable<T, D>>& xs, int dim = 0) {
  return detail::record_joining(xs, ops::joined(detail::defined_shapes("cat", xs), dim));
}
template <typename T, typename D>
Variable<T, D> cat(std::initializer_list<Variable<T, D>> xs, int dim = 0) {
  return cat(std::vector(xs), dim);
}
template <typename T, typename D>
Variable<T, D> stack(const std::vector<Variable<T, D>>& xs, int dim = 0) {
  return detail::record_joining(xs, ops::stacked(detail::defined_shapes("stack", xs), dim));
}
template <typename T, typename D>
Variable<T, D> stack(std::initializer_list<Variable<T, D>> xs, int dim = 0) {
  return stack(std::vector(xs), dim);
}

template <typename T, typename D>
Variable<T, D> slice(const Variable<T, D>& x, int dim, std::int64_t begin, std::int64_t end = Slice::to_end,
                     std::int64_t step = 1) {
  return detail::record_slice("slice", x, dim, {begin, end, step});
}
template <typename T, typename D>
Variable<T, D> slice(const Variable<T, D>& x, const std::vector<Slice>& slices) {
  return detail::record_movement(x, ops::sliced("slice", detail::defined_shape("slice", x), slices));
}
template <typename T, typename D>
Variable<T, D> slice_scatter(const Variable<T, D>& x, const Variable<T, D>& source, int dim, std::int64_t begin,
                             std::int64_t end = Slice::to_end, std::int64_t step = 1) {
  require_operands("slice_scatter", x, source);
  return detail::record_replacement(x, source, ops::sliced("slice_scatter", x.shape(), dim, {begin, end, step}));
}
template <typename T, typename D>
Variable<T, D> slice_scatter(const Variable<T, D>& x, const Variable<T, D>& source, const std::vector<Slice>& slices) {
  require_operands("slice_scatter", x, source);
  return detail::record_replacement(x, source, ops::sliced("slice_scatter", x.shape(), slices));
}
template <typename T, typename D>
Variable<T, D> narrow(const Variable<T, D>& x, int dim, std::int64_t start, std::int64_t length) {
  return detail::record_slice("narrow", x, dim, ops::narrowed(detail::defined_shape("narrow", x), dim, start, length));
}

template <typename T, typename D>
std::vector<Variable<T, D>> split(const Variable<T, D>& x, const std::vector<std::int64_t>& sizes, int dim = 0) {
  const Shape& shape = detail::defined_shape("split", x);
  ops::require_sizes(shape[ops::dim_of("split", shape, dim)], sizes);
  std::vector<Variable<T, D>> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(detail::record_slice("split", x, dim, {begin, begin + size}));
    begin += size;
  }
  return parts;
}
template <typename T, typename D>
std::vector<Variable<T, D>> split(const Variable<T, D>& x, std::int64_t size, int dim = 0) {
  const Shape& shape = detail::defined_shape("split", x);
  return split(x, ops::split_sizes(shape[ops::dim_of("split", shape, dim)], size), dim);
}
template <typename T, typename D>
std::vector<Variable<T, D>> chunk(const Variable<T, D>& x, std::int64_t chunks, int dim = 0) {
  const Shape& shape = detail::defined_shape("chunk", x);
  return split(x, ops::chunk_sizes(shape[ops::dim_of("chunk", shape, dim)], chunks), dim);
}
template <std::size_t n, typename T, typename D>
std::array<Variable<T, D>, n> chunk(const Variable<T, D>& x, int dim = 0) {
  return ops::parts_of<n>(detail::defined_shape("chunk", x), dim, chunk(x, n, dim));
}

template <typename T, typename D>
Variable<T, D> permute(const Variable<T, D>& x, const std::vector<int>& dims) {
  return detail::record_movement(x, ops::permuted(detail::defined_shape("permute", x), dims));
}
template <typename T, typename D>
Variable<T, D> expand(const Variable<T, D>& x, const Shape& shape) {
  return detail::record_movement(x, ops::expanded(detail::defined_shape("expand", x), shape));
}
template <typename T, typename D>
Variable<T, D> repeat(const Variable<T, D>& x, const std::vector<std::int64_t>& times) {
  return detail::record_movement(x, ops::repeated(detail::defined_shape("repeat", x), times));
}
template <typename T, typename D>
Variable<T, D> roll(const Variable<T, D>& x, const std::vector<std::int64_t>& shifts, const std::vector<int>& dims) {
  return detail::record_movement(x, ops::rolled(detail::defined_shape("roll", x), shifts, dims));
}
template <typename T, typename D>
Variable<T, D> roll(const Variable<T, D>& x, std::int64_t shift, int dim) {
  return roll(x, std::vector{shift}, std::vector{dim});
}
template <typename T, typename D>
Variable<T, D> flip(const Variable<T, D>& x, const std::vector<int>& dims) {
  return detail::record_movement(x, ops::flipped(detail::defined_shape("flip", x), dims));
}
template <typename T, typename D>
Variable<T, D> unfold(const Variable<T, D>& x, int dim, std::int64_t size, std::int64_t step) {
  return detail::record_movement(x, ops::unfolded(detail::defined_shape("unfold", x), dim, size, step));
}
template <typename T, typename D>
Variable<T, D> pad(const Variable<T, D>& x, const std::vector<std::int64_t>& amounts, const PadOptions& options = {}) {
  return detail::record_movement(x, ops::padded(detail::defined_shape("pad", x), amounts, options));
}

template <typename T, typename D>
Variable<T, D> triu(const Variable<T, D>& x, std::int64_t diagonal = 0) {
  return detail::record_triangle(ops::Triangle::upper, x, diagonal);
}
template <typename T, typename D>
Variable<T, D> tril(const Variable<T, D>& x, std::int64_t diagonal = 0) {
  return detail::record_triangle(ops::Triangle::lower, x, diagonal);
}

template <typename T, typename D>
Variable<T, D> squeeze(const Variable<T, D>& x) {
  return detail::record_view("squeeze", x, ops::squeezed_shape(detail::defined_shape("squeeze", x)));
}
template <typename T, typename D>
Variable<T, D> squeeze(const Variable<T, D>& x, int dim) {
  return detail::record_view("squeeze", x, ops::squeezed_shape(detail::defined_shape("squeeze", x), dim));
}
template <typename T, typename D>
Variable<T, D> unsqueeze(const Variable<T, D>& x, int dim) {
  return detail::record_view("unsqueeze", x, ops::unsqueezed_shape(detail::defined_shape("unsqueeze", x), dim));
}

template <typename T, typename D>
Variable<T, D> select(const Variable<T, D>& x, int dim, std::int64_t index) {
  const Shape& shape = detail::defined_shape("select", x);
  const int place = ops::dim_of("select", shape, dim);
  return squeeze(narrow(x, place, ops::selected(shape, place, index), 1), place);
}

// Joins the dims from start_dim to end_dim, both included. flatten(x) without dims is for images, see below.
template <typename T, typename D>
Variable<T, D> flatten(const Variable<T, D>& x, int start_dim, int end_dim = -1) {
  return detail::record_view("flatten", x, ops::flattened_shape(detail::defined_shape("flatten", x), start_dim, end_dim));
}

// Return constants with the shape of x.
template <typename T, typename D>
Variable<T, D> full_like(const Variable<T, D>& x, std::type_identity_t<T> value) {
  require_operands("full_like", x);
  return full_like(x.value(), value);
}
template <typename T, typename D>
Variable<T, D> zeros_like(const Variable<T, D>& x) {
  return full_like(x, T{});
}
template <typename T, typename D>
Variable<T, D> ones_like(const Variable<T, D>& x) {
  return full_like(x, static_cast<T>(1.0f));
}

// Flattens images with channels before pixels, as torch does: [batch, height, width, channels] -> [batch, channels * height *
// width].
template <typename T, typename D>
Variable<T, D> flatten(const Variable<T, D>& x) {
  require_operands("flatten", x);
  require(x.shape().size() == 4, "flatten: x {} is not [batch, height, width, channels]", x.shape());
  const std::int64_t pixels = x.shape()[1] * x.shape()[2];
  const std::int64_t channels = x.shape()[3];
  const Variable<T, D> rows = reshape(x, {x.shape()[0], pixels, channels});
  return reshape(channels == 1 ? rows : transpose(rows, 1, 2), {x.shape()[0], channels * pixels});
}

// The inverse: [batch, channels * height * width] -> [batch, height, width, channels].
template <typename T, typename D>
Variable<T, D> unflatten(const Variable<T, D>& x, const ops::Extent2d& extent, std::int64_t channels) {
  require_operands("unflatten", x);
  const std::int64_t pixels = extent.height * extent.width;
  const Shape& shape = x.shape();
  require(shape.size() == 2 && shape[1] == channels * pixels, "unflatten: x {} is not [batch, {} * {} * {}]", shape, channels,
          extent.height, extent.width);
  const Variable<T, D> rows = reshape(x, {shape[0], channels, pixels});
  return reshape(channels == 1 ? rows : transpose(rows, 1, 2), {shape[0], extent.height, extent.width, channels});
}

}  // namespace trireme
