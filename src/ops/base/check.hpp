#pragma once

#include <string_view>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// Throws "add: a is undefined". An undefined tensor has the shape of a scalar. The checks of tensors below include this.
template <typename T, typename D>
void require_defined(std::string_view op, std::string_view name, const Tensor<T, D>& had) {
  require(had.defined(), "{}: {} is undefined", op, name);
}

// "add: b has shape [2, 3], but needs [2, 4]"
inline void require_shape(std::string_view op, std::string_view name, const Shape& had, const Shape& wanted) {
  require(had == wanted, "{}: {} has shape {}, but needs {}", op, name, had, wanted);
}
template <typename T, typename D>
void require_shape(std::string_view op, std::string_view name, const Tensor<T, D>& had, const Shape& wanted) {
  require_defined(op, name, had);
  require_shape(op, name, had.shape(), wanted);
}

// For a tensor that an operation writes to: also counts the change.
template <typename T, typename D>
void require_shape(std::string_view op, std::string_view name, Tensor<T, D>& had, const Shape& wanted) {
  require_shape(op, name, std::as_const(had), wanted);
  had.count_change();
}

// For tensors that are indexed as one row of numbers, of any shape.
inline void require_count(std::string_view op, std::string_view name, const Shape& had, std::int64_t wanted) {
  require(had.numel() == wanted, "{}: {} has shape {}, but needs {} elements", op, name, had, wanted);
}
template <typename T, typename D>
void require_count(std::string_view op, std::string_view name, const Tensor<T, D>& had, std::int64_t wanted) {
  require_defined(op, name, had);
  require_count(op, name, had.shape(), wanted);
}

}  // namespace trireme::ops
