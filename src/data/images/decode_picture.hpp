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

// A decoder makes room for an image's pixels before it finds that they don't exist: a larger image is refused.
inline constexpr std::int64_t most_pixels = 178'956'970;  // PIL's limit

// What a file, PNG or JPEG by its content, shows: one channel where it is grey, else red, green and blue; 8 bits of each,
// without alpha. With `numbers` one channel has the places of a palette's colours, and grey pixels stay as they are stored.
// `path` is for the errors: Error{corrupt_file}, and Error{not_available} in a build without the library.
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
Picture decode_jpeg(std::span<const std::uint8_t> bytes, const Location& path, const PartRule& part_of);

// An Error where there are no pixels or more than most_pixels.
void check_extents(std::int64_t height, std::int64_t width, const Location& path);

// An empty picture of these extents, or an Error where they are more than most_pixels.
Picture picture_to_fill(std::int64_t height, std::int64_t width, std::int64_t channels, const Location& path);

// With 1 channel, grey as ITU-R 601 weighs colours, or 3; as PIL's convert("L") and convert("RGB").
Picture with_channels(Picture picture, std::int64_t channels);

// With these extents, each pixel a weighted mean of what lies around it or, where the picture becomes smaller, below it: the
// same bytes as PIL 13's resize((width, height), BILINEAR), BICUBIC or NEAREST, which blends nothing.
Picture resized(Picture picture, std::int64_t height, std::int64_t width, Resampling resampling = Resampling::bilinear);

// A box of an image, as large as this: bilinear.
std::vector<std::uint8_t> resized_box(std::span<const std::uint8_t> pixels, const ImageShape& shape, const Box& box,
                                      std::int64_t height, std::int64_t width);

// Its centre, which is not larger: as torchvision's center_crop, but rounded down.
Picture centre_of(const Picture& picture, std::int64_t height, std::int64_t width);

}  // namespace trireme::data
