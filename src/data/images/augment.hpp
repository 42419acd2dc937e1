#pragma once

#include <cstdint>
#include <span>

#include "data/images/image_content.hpp"
#include "data/images/image_transforms.hpp"
#include "trireme/data/images/augmentation.hpp"

namespace trireme::data {

void check(const Augmentation& augmentation, const ImageShape& shape);

// The box that is drawn for sample number `sample`; the rule refers to the augmentation.
BoxRule crop_rule(const Augmentation& augmentation, std::uint64_t seed, std::int64_t sample);

// The bytes of sample number `sample`, of its box, as values in [0, 1], changed as is drawn for it.
void read_augmented(std::span<const std::uint8_t> bytes, const Augmentation& augmentation, std::uint64_t seed,
                    std::int64_t sample, Image into);

// What random_erasing draws for the sample; the image is normalized.
void erase_box(const RandomErasing& erasing, std::uint64_t seed, std::int64_t sample, Image image);

}  // namespace trireme::data
