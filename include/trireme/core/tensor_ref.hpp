#pragma once

#include <string>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"

namespace trireme TRIREME_EXPORT {

// The name and place of a contiguous, row-major tensor. A TensorRef does not own the memory.
struct TensorRef {
  std::string name;
  DType dtype = DType::float32;
  Shape shape = {};
  const void* data = nullptr;  // may be null when the shape has no elements
};

}  // namespace trireme
