#pragma once

#include <string>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"

namespace trireme TRIREME_EXPORT {

// A named, contiguous, row-major tensor in memory that it does not own.
struct TensorRef {
  std::string name;
  DType dtype = DType::float32;
  Shape shape = {};
  const void* data = nullptr;  // may be null when the shape has no elements
};

}  // namespace trireme
