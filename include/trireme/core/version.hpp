#pragma once

#include <string_view>

#include "trireme/core/export.hpp"

// The version of these headers. A program can be written for several versions:
//
//   #if TRIREME_VERSION_MAJOR == 0 && TRIREME_VERSION_MINOR < 2
//
// A program compiled for 0.1.x runs with each 0.1.y; find_package and the dynamic loader refuse other versions.
#define TRIREME_VERSION_MAJOR 0
#define TRIREME_VERSION_MINOR 1
#define TRIREME_VERSION_PATCH 0

namespace trireme TRIREME_EXPORT {

// The version of the library that the program runs with: "0.1.0".
std::string_view version();

}  // namespace trireme
