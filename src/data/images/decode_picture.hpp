#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/images/random_boxes.hpp"
#include "trireme/data/images/picture.hpp"
#include "trireme/data/images/read_image.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// Larger images are refused, since a decoder allocates the pixels that a header claims before it can find them missing.
inline constexpr std::int64_t most_pixels = 178'956'970;  // PIL's limit

// Decodes a PNG, JPEG or WebP file, recognized by its content, to 8 bits per channel without alpha: one channel for grey,
// otherwise red, green, blue. With `numbers`, returns palette indices in one channel, and grey pixels as they are stored.
// `path` is used in errors: Error{corrupt_file}, and Error{not_available} in a build without the library.
Picture decode_picture(std::span<const std::uint8_t> bytes, const Location& path, bool numbers = false);

// What of a JPEG image is decoded.
struct JpegPart {
  int reduction = 1;  // 1, 2, 4 or 8: so many times fewer pixels each way, means of what they replace
  Box box = {};       // of the pixels that are then left; those outside of it need not be there. Empty: all
};

// Asked with the extents of a JPEG image before its pixels are read. The picture has those of the whole, reduced.
using PartRule = std::function<JpegPart(const ImageShape& stored)>;
Picture decode_part(std::span<const std::uint8_t> bytes, const Location& path, const PartRule& part_of);

Picture decode_png(std::span<const std::uint8_t> bytes, const Location& path, bool numbers);
Picture decode_webp(std::span<const std::uint8_t> bytes, const Location& path);
Picture decode_jpeg(std::span<const std::uint8_t> bytes, const Location& path, const PartRule& part_of);

// An Error where there are no pixels or more than most_pixels.
void check_extents(std::int64_t height, std::int64_t width, const Location& path);

// A zeroed picture of this shape. Throws Error above most_pixels.
Picture picture_to_fill(std::int64_t height, std::int64_t width, std::int64_t channels, const Location& path);

// Converts to 1 channel (grey by ITU-R 601 weights) or 3 channels, as PIL's convert("L") and convert("RGB").
Picture with_channels(Picture picture, std::int64_t channels);

// Resizes to the same bytes as PIL 13's resize((width, height), resampling). Except for nearest, each pixel is a weighted mean
// of the pixels around its place or, when downsampling, of those that it covers.
Picture resized(Picture picture, std::int64_t height, std::int64_t width, Resampling resampling = Resampling::bilinear);

// Resizes a box of an image to this size, bilinear.
std::vector<std::uint8_t> resized_box(std::span<const std::uint8_t> pixels, const ImageShape& shape, const Box& box,
                                      std::int64_t height, std::int64_t width);

// Crops the centre, as torchvision's center_crop but with offsets rounded down. The crop must not be larger than the picture.
Picture centre_of(const Picture& picture, std::int64_t height, std::int64_t width);

}  // namespace trireme::data
