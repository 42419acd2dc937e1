#pragma once

#include <string_view>

#include "trireme/files/location.hpp"

namespace trireme::data {

// Throws Error{invalid_argument} with the path where the content is no text: compressed, an image, or with a zero byte.
void require_text(std::string_view content, const Location& path);

}  // namespace trireme::data
