#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// The extents of a row-major tensor with at most 6 dims. A scalar has no dims.
class Shape {
 public:
  static constexpr int max_dims = 6;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);  // throws Error for a negative dim or more than max_dims

  int size() const { return size_; }  // number of dims
  std::int64_t numel() const;         // number of elements; 1 for a scalar

  std::int64_t operator[](int dim) const;  // a negative dim counts from the end
  std::int64_t back() const { return (*this)[-1]; }
  std::int64_t rows() const;  // product of all dims but the last: the rows of the tensor seen as a matrix

  // The row-major offset of an element, for example of {row, column}. Negative indices count from the end. Throws Error outside
  // of the shape.
  std::int64_t place_of(std::span<const std::int64_t> index) const;

  std::span<const std::int64_t> dims() const { return {dims_.data(), static_cast<std::size_t>(size_)}; }
  std::string str() const;  // "[8, 256, 384]"

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::int64_t product_of_first(int count) const;

  std::array<std::int64_t, max_dims> dims_{};
  int size_ = 0;
};

// A shape with `numel` elements; one dim may be -1 and is computed from the others: {-1, 4} with 12 elements is [3, 4].
Shape shape_for(std::int64_t numel, std::initializer_list<std::int64_t> dims);

}  // namespace trireme

// Lets require(ok, "... {}", shape) format the shape only when it throws.
template <>
struct TRIREME_EXPORT fmt::formatter<trireme::Shape> : fmt::formatter<fmt::string_view> {
  fmt::format_context::iterator format(const trireme::Shape& shape, fmt::format_context& context) const;
};
