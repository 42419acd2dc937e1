#pragma once

#include <string>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {
namespace detail {

// In a handler of `error`: throws it again, where it refuses an argument with the layer before it, unless it names the layer or
// one within it already.
[[noreturn]] void rethrow_from(const std::string& layer, const Error& error);

}  // namespace detail
}  // namespace nn
}  // namespace trireme
