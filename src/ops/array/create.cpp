#include "trireme/ops/array/create.hpp"

#include <cmath>
#include <cstring>

#include "ops/array/create_on.hpp"
#include "ops/base/parallel.hpp"

namespace trireme::ops {

std::int64_t arange_count(double begin, double end, double step) {
  require(std::isfinite(begin) && std::isfinite(end) && std::isfinite(step) && step != 0,
          "arange: from {} to {} by {} is endless: a step is finite and not 0", begin, end, step);
  const double count = std::ceil((end - begin) / step);
  require(count >= 0, "arange: from {} to {} goes the other way than the step {}", begin, end, step);
  require(count < 0x1p53, "arange: from {} to {} by {} are too many elements", begin, end, step);
  return static_cast<std::int64_t>(count);
}

Line linspace_line(double begin, double end, std::int64_t count) {
  const double steps = count > 1 ? static_cast<double>(count - 1) : 1;
  return {.first = begin, .step = (end - begin) / steps, .last = end, .ends = count > 1};
}

// Each row is a run of elements between two of zeros, either of which may be empty.
template <>
void Creates<Cpu>::triangle(const TriangleSizes& sizes, int element_bytes, std::int64_t count, const void* x, void* y) {
  const std::int64_t rows = count / sizes.columns;
  parallel_rows(rows, sizes.columns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row % sizes.rows + sizes.diagonal;
      const std::int64_t first = sizes.upper ? std::clamp<std::int64_t>(at, 0, sizes.columns) : 0;
      const std::int64_t last = sizes.upper ? sizes.columns : std::clamp<std::int64_t>(at + 1, 0, sizes.columns);
      const auto offset = [&](std::int64_t column) { return (row * sizes.columns + column) * element_bytes; };
      const auto bytes = [&](std::int64_t columns) { return static_cast<std::size_t>(columns * element_bytes); };
      auto* to = static_cast<std::byte*>(y);
      std::memset(to + offset(0), 0, bytes(first));
      std::memmove(to + offset(first), static_cast<const std::byte*>(x) + offset(first), bytes(last - first));
      std::memset(to + offset(last), 0, bytes(sizes.columns - last));
    }
  });
}

template <>
template <typename T>
void Creates<Cpu>::line(const FillLine<T>& body) {
  parallel_elements(body.count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

TRIREME_INSTANTIATE_CREATES(Cpu);

}  // namespace trireme::ops
