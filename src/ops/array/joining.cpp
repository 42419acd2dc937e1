#include "trireme/ops/array/joining.hpp"

#include <numeric>

#include "trireme/core/error.hpp"
#include "trireme/ops/array/movement.hpp"

namespace trireme::ops {
namespace {

// The product of the extents of dims [begin, end).
std::int64_t product_of_dims(const Shape& shape, int begin, int end) {
  std::int64_t product = 1;
  for (int dim = begin; dim < end; ++dim) product *= shape[dim];
  return product;
}

}  // namespace

StridedCopy Joining::part(std::size_t i) const {
  const std::int64_t total = std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
  StridedCopy copy;
  copy.to = std::accumulate(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(i), std::int64_t{0});
  copy.add({.extent = outer, .from = widths[i], .to = total});
  copy.add({.extent = widths[i], .from = 1, .to = 1});
  return copy;
}

Joining joined(const std::vector<Shape>& shapes, int dim) {
  require(!shapes.empty(), "cat: the list of tensors is empty");
  const Shape& first = shapes.front();
  const int place = dim_of("cat", first, dim);
  std::vector<std::int64_t> dims(first.dims().begin(), first.dims().end());
  std::int64_t& together = dims[static_cast<std::size_t>(place)];
  together = 0;
  Joining joining{.name = "cat", .to = {}, .outer = product_of_dims(first, 0, place), .dim = dim};
  const std::int64_t inner = product_of_dims(first, place + 1, first.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Shape& shape = shapes[i];
    bool fits = shape.size() == first.size();
    for (int each = 0; fits && each < shape.size(); ++each) fits = each == place || shape[each] == first[each];
    require(fits, "cat: tensor {} is {}, but the first is {}: they may only differ along dim {}", i, shape, first, dim);
    together += shape[place];
    joining.widths.push_back(shape[place] * inner);
  }
  joining.to = Shape(dims);
  return joining;
}

Joining stacked(const std::vector<Shape>& shapes, int dim) {
  require(!shapes.empty(), "stack: the list of tensors is empty");
  const Shape& first = shapes.front();
  const int place = dim < 0 ? dim + first.size() + 1 : dim;
  require(place >= 0 && place <= first.size(), "stack: tensors of shape {} have no place {} for a new dim", first, dim);
  require(first.size() < Shape::max_dims, "stack: tensors of {} have {} dims, which is the most", first, Shape::max_dims);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    require(shapes[i] == first, "stack: tensor {} is {}, but the first is {}", i, shapes[i], first);
  }
  std::vector<std::int64_t> dims(first.dims().begin(), first.dims().end());
  dims.insert(dims.begin() + place, std::ssize(shapes));
  return {.name = "stack",
          .to = Shape(dims),
          .outer = product_of_dims(first, 0, place),
          .widths = std::vector(shapes.size(), product_of_dims(first, place, first.size())),
          .dim = dim};
}

}  // namespace trireme::ops
