#pragma once

#include <string>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {
namespace detail {

// Rethrows `error`; call it in the error's handler. An error about an argument gets the layer's name in front, unless the
// error already names the layer or a layer within it.
[[noreturn]] void rethrow_from(const std::string& layer, const Error& error);

}  // namespace detail
}  // namespace nn
}  // namespace trireme
