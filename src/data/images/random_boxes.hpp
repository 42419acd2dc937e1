#pragma once

#include <array>
#include <cstdint>

#include "data/sources/draws.hpp"
#include "trireme/data/images/augmentation.hpp"
#include "trireme/data/images/image_dataset.hpp"

namespace trireme::data {

// A part of an image, in pixels.
struct Box {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  bool operator==(const Box&) const = default;
};

void check(const RandomResizedCrop& crop);
void check(const RandomErasing& erasing);

// The boxes that are drawn for sample `sample`.
Box crop_box(const RandomResizedCrop& crop, const ImageShape& shape, std::uint64_t seed, std::int64_t sample);
Box erased_box(const RandomErasing& erasing, const ImageShape& shape, std::uint64_t seed, std::int64_t sample);  // empty: none

// A box around a pixel with this share of the image's area, clipped to the image.
Box box_around(std::int64_t row, std::int64_t column, double share, const ImageShape& shape);

}  // namespace trireme::data
