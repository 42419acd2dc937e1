#pragma once

#include <string>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {
namespace detail {

// Call it in the handler of `error`. Rethrows it; an error about an argument gets the layer's name in front, unless it already
// names the layer or one within it.
[[noreturn]] void rethrow_from(const std::string& layer, const Error& error);

}  // namespace detail
}  // namespace nn
}  // namespace trireme
