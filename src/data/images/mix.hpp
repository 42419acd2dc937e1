#pragma once

#include <cstdint>
#include <span>

#include "data/images/image_transforms.hpp"
#include "data/images/random_boxes.hpp"
#include "trireme/data/images/augmentation.hpp"
#include "trireme/data/images/image_batch.hpp"

namespace trireme::data {

// How an image is mixed with its partner.
struct Mix {
  float lambda = 1;     // the share of the image itself
  bool in_box = false;  // true: copies a box of the partner (CutMix); false: blends all pixels (Mixup)
  Box box = {};
};

bool mixes(const Augmentation& augmentation);

// Draws the mix for sample `sample`.
Mix drawn_mix(const Augmentation& augmentation, const ImageShape& shape, std::uint64_t seed, std::int64_t sample);

// Draws from Beta(alpha, alpha).
double drawn_share(double alpha, std::uint64_t seed, std::int64_t sample);

// The image that the first row of a batch is mixed with.
struct Partner {
  std::span<const float> pixels;
  std::int32_t label = no_label;
};

// Mixes each row that holds a sample with the previous row, and fills partner_labels, lambda and soft_labels.
void mix(ImageBatch& batch, const Partner& first_partner, std::int64_t classes, const Augmentation& augmentation,
         std::uint64_t seed);

}  // namespace trireme::data
