#pragma once

#include <cstdint>

#include "trireme/data/images/image_dataset.hpp"
#include "trireme/data/images/read_image.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// Throws Error unless images of these extents can be taken of what is resized so.
void check(const Resizing& resizing, std::int64_t height, std::int64_t width, std::int64_t channels);

// What an image of this shape is resized to before its centre of these extents is taken; too many pixels are an Error.
ImageShape resized_shape(const ImageShape& shape, const Resizing& resizing, std::int64_t height, std::int64_t width,
                         const Location& path);

}  // namespace trireme::data
