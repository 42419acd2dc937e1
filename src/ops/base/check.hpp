#pragma once

#include <string_view>

#include "trireme/core/error.hpp"
#include "trireme/core/shape.hpp"

namespace trireme::ops {

// "add: b has shape [2, 3], but needs [2, 4]"
inline void require_shape(std::string_view op, std::string_view name, const Shape& had, const Shape& wanted) {
  require(had == wanted, "{}: {} has shape {}, but needs {}", op, name, had, wanted);
}

// For tensors that are indexed as one row of numbers, whatever their shape.
inline void require_count(std::string_view op, std::string_view name, const Shape& had, std::int64_t wanted) {
  require(had.numel() == wanted, "{}: {} has shape {}, but needs {} elements", op, name, had, wanted);
}

}  // namespace trireme::ops
