#include "trireme/core/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme {

Shape::Shape(std::span<const std::int64_t> dims) {
  require(dims.size() <= max_dims, "a shape has at most {} dims, got {}", max_dims, dims.size());
  for (const std::int64_t dim : dims) {
    require(dim >= 0, "a shape's dims are 0 or more, got [{}]", fmt::join(dims, ", "));
    dims_[static_cast<std::size_t>(size_++)] = dim;
  }
}

std::int64_t Shape::product_of_first(int count) const {
  std::int64_t product = 1;
  for (int dim = 0; dim < count; ++dim) {
    require(!__builtin_mul_overflow(product, dims_[static_cast<std::size_t>(dim)], &product),
            "the shape {} has more than 2^63 elements", *this);
  }
  return product;
}

std::int64_t Shape::numel() const { return product_of_first(size_); }

std::int64_t Shape::operator[](int dim) const {
  const int index = dim < 0 ? dim + size_ : dim;
  require(index >= 0 && index < size_, "dim {} does not exist in the shape {}", dim, *this);
  return dims_[static_cast<std::size_t>(index)];
}

std::int64_t Shape::rows() const { return product_of_first(size_ - 1); }

std::int64_t Shape::place_of(std::span<const std::int64_t> index) const {
  require(std::ssize(index) == size_, "the element [{}] of the shape {}: it needs {} numbers", fmt::join(index, ", "), *this,
          size_);
  std::int64_t place = 0;
  for (std::size_t at = 0; at < index.size(); ++at) {
    const std::int64_t dim = dims_[at];
    const std::int64_t in_dim = index[at] < 0 ? index[at] + dim : index[at];
    require(in_dim >= 0 && in_dim < dim, "the element [{}] lies outside the shape {}", fmt::join(index, ", "), *this);
    place = place * dim + in_dim;
  }
  return place;
}

Shape shape_for(std::int64_t numel, std::initializer_list<std::int64_t> dims) {
  const auto open = std::ranges::find(dims, -1);
  if (open == dims.end()) return Shape(dims);
  std::vector<std::int64_t> all(dims);
  std::int64_t& rest = all[static_cast<std::size_t>(open - dims.begin())];
  rest = 1;
  const std::int64_t others = Shape(all).numel();
  require(others > 0 && numel % others == 0, "{} elements do not fill a shape [{}]", numel, fmt::join(dims, ", "));
  rest = numel / others;
  return Shape(all);
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(dims(), ", ")); }

}  // namespace trireme

fmt::format_context::iterator fmt::formatter<trireme::Shape>::format(const trireme::Shape& shape,
                                                                     fmt::format_context& context) const {
  return fmt::formatter<fmt::string_view>::format(shape.str(), context);
}
