#pragma once

#include <cstdint>
#include <span>

#include "data/images/image_content.hpp"
#include "data/images/image_transforms.hpp"
#include "trireme/data/images/augmentation.hpp"

namespace trireme::data {

void check(const Augmentation& augmentation, const ImageShape& shape);

// The box that is drawn for sample `sample`. The rule refers to the augmentation.
BoxRule crop_rule(const Augmentation& augmentation, std::uint64_t seed, std::int64_t sample);

// Writes the bytes of an image's box as values in [0, 1], with the random changes drawn for sample `sample`, except erasing and
// mixing.
void read_augmented(std::span<const std::uint8_t> bytes, const Augmentation& augmentation, std::uint64_t seed,
                    std::int64_t sample, Image into);

// Erases the box that is drawn for sample `sample`. The image must be normalized already.
void erase_box(const RandomErasing& erasing, std::uint64_t seed, std::int64_t sample, Image image);

}  // namespace trireme::data
