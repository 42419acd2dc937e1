#include "trireme/ops/pointwise/broadcast.hpp"

#include <algorithm>
#include <span>

#include "trireme/core/error.hpp"
#include "trireme/core/shape.hpp"

namespace trireme::ops {

static_assert(Broadcast::most_dims == Shape::max_dims);

Shape broadcast_shape(std::string_view operation, const Shape& a, const Shape& b) {
  std::array<std::int64_t, Shape::max_dims> dims{};
  const int size = std::max(a.size(), b.size());
  for (int dim = -1; - dim <= size; --dim) {
    const std::int64_t of_a = -dim <= a.size() ? a[dim] : 1;
    const std::int64_t of_b = -dim <= b.size() ? b[dim] : 1;
    require(of_a == of_b || of_a == 1 || of_b == 1,
            "{}: the operands have the shapes {} and {}: in dim {} they have {} and {} elements, but need equally many, or 1",
            operation, a, b, dim, of_a, of_b);
    dims[static_cast<std::size_t>(size + dim)] = of_a == 1 ? of_b : of_a;
  }
  return Shape(std::span(dims.data(), static_cast<std::size_t>(size)));
}

Broadcast::Broadcast(const Shape& result, std::initializer_list<Shape> operands)
    : Broadcast(result, operands.begin(), static_cast<int>(operands.size())) {}

Broadcast::Broadcast(const Shape& result, const Shape* operands, int count) : numel(result.numel()) {
  require(count <= most_operands, "{} operands are too many for one pass over them, {} are possible", count, +most_operands);
  std::array<std::int64_t, most_operands> step{};  // stride of the current dim, in each operand
  step.fill(1);
  std::array<std::int64_t, most_dims> found_extent{};  // innermost first
  std::array<std::array<std::int64_t, most_dims>, most_operands> found_stride{};
  std::size_t found = 0;
  for (int dim = -1; - dim <= result.size(); --dim) {
    if (result[dim] == 1) continue;
    std::array<std::int64_t, most_operands> strides{};
    bool joins = found > 0;
    for (int index = 0; index < count; ++index) {
      const auto i = static_cast<std::size_t>(index);
      const Shape& shape = operands[index];
      const std::int64_t own = -dim <= shape.size() ? shape[dim] : 1;
      strides[i] = own == 1 ? 0 : step[i];
      step[i] *= own;
      joins = joins && strides[i] == found_stride[i][found - 1] * found_extent[found - 1];
    }
    if (joins) {
      found_extent[found - 1] *= result[dim];
    } else {
      found_extent[found] = result[dim];
      for (std::size_t i = 0; i < most_operands; ++i) found_stride[i][found] = strides[i];
      ++found;
    }
  }
  if (found == 0) {
    extent[0] = 1;
    return;
  }
  dims = static_cast<int>(found);
  for (std::size_t dim = 0; dim < found; ++dim) {
    extent[dim] = found_extent[found - 1 - dim];
    for (std::size_t i = 0; i < most_operands; ++i) stride[i][dim] = found_stride[i][found - 1 - dim];
  }
}

bool Broadcast::is_whole(int operand) const {
  const auto& of = stride[static_cast<std::size_t>(operand)];
  std::int64_t expected = 1;
  for (auto dim = static_cast<std::size_t>(dims); dim-- > 0; expected *= extent[dim]) {
    if (of[dim] != expected && extent[dim] != 1) return false;
  }
  return true;
}

bool Broadcast::is_single(int operand) const {
  const auto& of = stride[static_cast<std::size_t>(operand)];
  return std::ranges::all_of(of, [](std::int64_t step) { return step == 0; });
}

bool Broadcast::are_whole_or_single(int operands) const {
  for (int operand = 0; operand < operands; ++operand) {
    if (!is_whole(operand) && !is_single(operand)) return false;
  }
  return true;
}

}  // namespace trireme::ops
