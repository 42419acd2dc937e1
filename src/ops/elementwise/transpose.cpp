#include "ops/base/parallel.hpp"
#include "ops/elementwise/transpose_on.hpp"

namespace trireme::ops {

Shape transposed_shape(const Shape& shape, int first, int second) {
  std::array<std::int64_t, Shape::max_dims> dims{};
  std::copy(shape.dims().begin(), shape.dims().end(), dims.begin());
  std::swap(dims[static_cast<std::size_t>(transposed_place(shape, first))],
            dims[static_cast<std::size_t>(transposed_place(shape, second))]);
  return Shape(std::span(dims.data(), shape.dims().size()));
}

template <>
template <typename T>
void Transpose<Cpu>::copy(const TransposeSizes& sizes, const T* x, T* y) {
  const std::int64_t rows = sizes.rows;
  const std::int64_t middle = sizes.middle;
  const std::int64_t columns = sizes.columns;
  const std::int64_t inner = sizes.inner;
  parallel_rows(sizes.outer * columns * middle, rows * inner, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t m = index % middle;
      const std::int64_t column = index / middle % columns;
      const std::int64_t o = index / (middle * columns);
      const T* from = x + ((o * rows * middle + m) * columns + column) * inner;
      T* to = y + index * rows * inner;
      for (std::int64_t row = 0; row < rows; ++row, from += middle * columns * inner, to += inner) std::copy_n(from, inner, to);
    }
  });
}

TRIREME_INSTANTIATE_TRANSPOSE(float, Cpu);
TRIREME_INSTANTIATE_TRANSPOSE(double, Cpu);
TRIREME_INSTANTIATE_TRANSPOSE(bfloat16, Cpu);
TRIREME_INSTANTIATE_TRANSPOSE(float16, Cpu);
TRIREME_INSTANTIATE_TRANSPOSE(std::int32_t, Cpu);
TRIREME_INSTANTIATE_TRANSPOSE(std::int64_t, Cpu);
TRIREME_INSTANTIATE_TRANSPOSE(bool, Cpu);

}  // namespace trireme::ops
