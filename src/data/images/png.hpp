#pragma once

#include <cstdint>
#include <vector>

#include "trireme/data/images/picture.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// Encodes a picture as PNG; `path` is used in errors. Throws Error{not_available} in a build without libpng.
std::vector<std::uint8_t> png_of(const Picture& picture, const Location& path);

}  // namespace trireme::data
