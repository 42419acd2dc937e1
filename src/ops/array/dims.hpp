#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "trireme/core/shape.hpp"

namespace trireme::ops {

using DimExtents = std::array<std::int64_t, Shape::max_dims>;
using DimStrides = std::array<std::int64_t, Shape::max_dims>;  // in elements

inline DimExtents extents_of(const Shape& shape) {
  DimExtents extents{};
  std::copy(shape.dims().begin(), shape.dims().end(), extents.begin());
  return extents;
}

inline Shape shape_of(const DimExtents& extents, int size) {
  return Shape(std::span(extents.data(), static_cast<std::size_t>(size)));
}

inline DimStrides strides_of(const Shape& shape) {
  DimStrides strides{};
  std::int64_t stride = 1;
  for (int dim = shape.size() - 1; dim >= 0; --dim) {
    strides[static_cast<std::size_t>(dim)] = stride;
    stride *= shape[dim];
  }
  return strides;
}

}  // namespace trireme::ops
