#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Crops a box of random area and aspect ratio and resizes it to the image's size, bilinearly as in PIL. Like torchvision's
// RandomResizedCrop (Szegedy et al. 2014, arXiv 1409.4842), it draws up to ten boxes until one fits into the image. If none
// fits, it takes the largest centred box with an allowed ratio.
struct RandomResizedCrop {
  std::array<double, 2> scale = {0.08, 1};           // area of the box / area of the image, uniform in this range
  std::array<double, 2> ratio = {3.0 / 4, 4.0 / 3};  // width / height of the box; the logarithm is uniform
};

// Applies num_ops operations drawn from a list, all with the same magnitude (Cubuk et al. 2019, arXiv 1909.13719). The list is
// that of torchvision's RandAugment: identity, shear and translate along x and y, rotate, brightness, colour, contrast,
// sharpness, posterize, solarize, autocontrast, equalize. Geometric operations take the nearest pixel, and zeros beyond the
// image.
struct RandAugment {
  int num_ops = 2;
  int magnitude = 9;  // below num_magnitude_bins
  int num_magnitude_bins = 31;
};

// Overwrites a random box of the image, after the normalization (Zhong et al. 2017, arXiv 1708.04896). Like torchvision's
// RandomErasing, it draws up to ten boxes until one is smaller than the image. If none is, it erases nothing.
struct RandomErasing {
  double p = 0.5;                              // the probability that an image is changed
  std::array<double, 2> scale = {0.02, 0.33};  // area of the box / area of the image, uniform in this range
  std::array<double, 2> ratio = {0.3, 3.3};    // height / width of the box; the logarithm is uniform
  float value = 0;                             // the new value of the box's pixels, after normalization
  bool random_values = false;                  // instead of value: normal random values, mean 0, standard deviation 1
};

// Random changes of training images, applied in this order. By default all are off. The random numbers of an image depend only
// on the seed and the sample's number.
struct Augmentation {
  std::optional<RandomResizedCrop> random_resized_crop = {};
  std::int64_t crop_padding = 0;  // pads the image with this many zeros on each side, then crops it at random to its size
  bool horizontal_flip = false;   // mirrors an image with probability 1/2
  double rotation = 0;            // up to this many degrees to either side; bilinear, zeros beyond the image
  std::optional<RandAugment> rand_augment = {};

  // As in torchvision's ColorJitter, these changes come in a random order. With strength s, the factor is uniform in
  // [max(0, 1 - s), 1 + s]. Each change clamps to [0, 1]. Grey is 0.2989 red + 0.587 green + 0.114 blue.
  double brightness = 0;  // multiplies values by the factor
  double contrast = 0;    // scales the distance of values from the image's mean grey by the factor
  double saturation = 0;  // scales the distance of values from the pixel's grey; no effect on one channel
  double hue = 0;         // shifts the hue by up to this share of the colour circle to either side, at most 0.5

  std::optional<RandomErasing> random_erasing = {};

  // Mixes each image with the previous image of its step, the first with the last, after all changes above. The pairs do not
  // depend on ranks and micro-batches. lambda is the share of the image itself in the mix. It is drawn from Beta(alpha, alpha)
  // for each image; torchvision's default alpha is 1. An alpha of 0 turns Mixup or CutMix off; if both are on, each is used
  // with probability 1/2.
  double mixup_alpha = 0;      // lambda x + (1 - lambda) partner (Zhang et al. 2017, arXiv 1710.09412)
  double cutmix_alpha = 0;     // pastes a box of the partner, 1 - lambda of the area (Yun et al. 2019, arXiv 1905.04899)
  double mix_probability = 1;  // of mixing an image
};

}  // namespace data
}  // namespace trireme
