#pragma once

#include "trireme/core/host_device.hpp"

namespace trireme::ops {

// What a kernel is told of a Scalar.
template <typename T>
struct ScalarArgument {
  T value{};
  const T* element = nullptr;  // which is read instead, unless null

  TRIREME_HOST_DEVICE T get() const { return element == nullptr ? value : *element; }
};

}  // namespace trireme::ops
