#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"

namespace trireme TRIREME_EXPORT {

// Some dims of a tensor, by their numbers: 0, or {0, 2}. Negative numbers count from the end.
//
//   sum(x, -1);       // over the last dim
//   sum(x, {0, 2});   // over two dims
//   sum(x);           // no dims: over all
class Dims {
 public:
  Dims() = default;
  Dims(std::same_as<int> auto dim) : Dims({dim}) {}
  Dims(std::initializer_list<int> dims) : Dims(std::span(dims.begin(), dims.size())) {}
  explicit Dims(std::span<const int> dims) {
    require(dims.size() <= Shape::max_dims, "a tensor has at most {} dims, got {} numbers of dims", Shape::max_dims,
            dims.size());
    for (const int dim : dims) dims_[size_++] = dim;
  }

  std::span<const int> numbers() const { return {dims_.data(), size_}; }
  bool empty() const { return size_ == 0; }

  friend bool operator==(const Dims&, const Dims&) = default;

 private:
  std::array<int, Shape::max_dims> dims_{};
  std::size_t size_ = 0;
};

}  // namespace trireme
