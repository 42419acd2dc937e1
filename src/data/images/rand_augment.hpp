#pragma once

#include <cstdint>

#include "data/images/image_transforms.hpp"
#include "trireme/data/images/augmentation.hpp"

namespace trireme::data {

// The operations to draw from.
enum class RandomOperation : std::uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  colour,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize,
};
inline constexpr std::int64_t num_random_operations = 14;

void check(const RandAugment& augment, const ImageShape& shape);

// Applies an operation to an image with values in [0, 1]. `strength`, in [0, 1], is the share of the largest magnitude; `sign`,
// -1 or 1, is the direction, where the operation has one.
void apply(RandomOperation operation, double strength, int sign, Image image);

// Applies the operations that are drawn for sample `sample`.
void apply(const RandAugment& augment, std::uint64_t seed, std::int64_t sample, Image image);

}  // namespace trireme::data
