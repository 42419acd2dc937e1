#pragma once

#include "trireme/core/host_device.hpp"

namespace trireme::ops {

// A Scalar as the argument of a kernel.
template <typename T>
struct ScalarArgument {
  T value{};
  const T* element = nullptr;  // read instead of `value`, unless null

  TRIREME_HOST_DEVICE T get() const { return element == nullptr ? value : *element; }
};

}  // namespace trireme::ops
