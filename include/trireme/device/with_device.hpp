#pragma once

#include <string_view>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/device/build.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/device/device.hpp"

namespace trireme TRIREME_EXPORT {
namespace device {

// Calls body(D()) with the device of this name: "cpu", or "cuda" for this thread's GPU. Throws Error{not_available} if there is
// no GPU or the build has no CUDA. A build without CUDA does not compile the body for Cuda.
template <typename Body>
void with_device(std::string_view name, Body&& body) {
  require(name == "cpu" || name == "cuda", "there is no device \"{}\": use cpu or cuda", name);
  if (name == "cpu") return std::forward<Body>(body)(Cpu{});
  require_cuda();
  if constexpr (built_with_cuda) std::forward<Body>(body)(Cuda{});
}

}  // namespace device
}  // namespace trireme
