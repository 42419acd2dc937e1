#include "trireme/ops/transpose.hpp"

#include <numeric>

#include "ops/check.hpp"
#include "ops/parallel.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::ops {
namespace {

int place_of(const Shape& shape, int dim) {
  const int place = dim < 0 ? dim + shape.size() : dim;
  require(place >= 0 && place < shape.size(), "transpose: a tensor of shape {} has no dim {}", shape, dim);
  return place;
}

std::int64_t product(const Shape& shape, int begin, int end) {
  return std::accumulate(shape.dims().begin() + begin, shape.dims().begin() + end, std::int64_t{1}, std::multiplies<>());
}

}  // namespace

Shape transposed_shape(const Shape& shape, int first, int second) {
  std::array<std::int64_t, Shape::max_dims> dims{};
  std::copy(shape.dims().begin(), shape.dims().end(), dims.begin());
  std::swap(dims[static_cast<std::size_t>(place_of(shape, first))], dims[static_cast<std::size_t>(place_of(shape, second))]);
  return Shape(std::span(dims.data(), shape.dims().size()));
}

template <typename T, typename D>
void transpose(const Tensor<T, D>& x, int first, int second, Tensor<T, D>& y) {
  require_shape("transpose", "y", y.shape(), transposed_shape(x.shape(), first, second));
  const auto [a, b] = std::minmax({place_of(x.shape(), first), place_of(x.shape(), second)});
  if (x.numel() == 0 || a == b) {
    std::copy_n(x.data(), x.numel(), y.data());
    return;
  }
  // [outer, rows, middle, columns, inner] -> [outer, columns, middle, rows, inner]
  const std::int64_t rows = x.dim(a);
  const std::int64_t middle = product(x.shape(), a + 1, b);
  const std::int64_t columns = x.dim(b);
  const std::int64_t inner = product(x.shape(), b + 1, x.shape().size());
  const std::int64_t outer = x.numel() / (rows * middle * columns * inner);
  parallel_rows(outer * columns * middle, rows * inner, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t m = index % middle;
      const std::int64_t column = index / middle % columns;
      const std::int64_t o = index / (middle * columns);
      const T* from = x.data() + ((o * rows * middle + m) * columns + column) * inner;
      T* to = y.data() + index * rows * inner;
      for (std::int64_t row = 0; row < rows; ++row, from += middle * columns * inner, to += inner) std::copy_n(from, inner, to);
    }
  });
}

template void transpose(const Tensor<float, Cpu>&, int, int, Tensor<float, Cpu>&);
template void transpose(const Tensor<double, Cpu>&, int, int, Tensor<double, Cpu>&);
template void transpose(const Tensor<bfloat16, Cpu>&, int, int, Tensor<bfloat16, Cpu>&);
template void transpose(const Tensor<float16, Cpu>&, int, int, Tensor<float16, Cpu>&);

}  // namespace trireme::ops
