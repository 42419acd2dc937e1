#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A part of the image of random area and shape becomes the whole image, as PIL resizes (bilinear). As torchvision's
// RandomResizedCrop (Szegedy et al. 2014, arXiv 1409.4842): ten boxes are drawn until one lies within the image; else the
// largest in the middle is taken whose shape is allowed.
struct RandomResizedCrop {
  std::array<double, 2> scale = {0.08, 1};           // the box's area as a share of the image's, evenly from this range
  std::array<double, 2> ratio = {3.0 / 4, 4.0 / 3};  // its width / height; the logarithm is spread evenly
};

// Operations drawn from a list, each with the same magnitude (Cubuk et al. 2019, arXiv 1909.13719). As torchvision's
// RandAugment: identity, shear and translate along x and y, rotate, brightness, colour, contrast, sharpness, posterize,
// solarize, autocontrast, equalize; nearest pixels, zeros beyond the image.
struct RandAugment {
  int num_ops = 2;
  int magnitude = 9;  // below num_magnitude_bins
  int num_magnitude_bins = 31;
};

// A box of the image gets another content (Zhong et al. 2017, arXiv 1708.04896). As torchvision's RandomErasing, after the
// normalization: ten boxes are drawn until one is smaller than the image; else nothing is erased.
struct RandomErasing {
  double p = 0.5;                              // the probability that an image is changed
  std::array<double, 2> scale = {0.02, 0.33};  // the box's area as a share of the image's, evenly from this range
  std::array<double, 2> ratio = {0.3, 3.3};    // its height / width; the logarithm is spread evenly
  float value = 0;                             // what the box gets, in normalized values
  bool random_values = false;                  // instead of value: normal ones, mean 0, standard deviation 1
};

// Random changes of training images, applied in this order; 0, false and what is not there leave an image alone. What is drawn
// for an image is a function of the seed and of the sample's number alone.
struct Augmentation {
  std::optional<RandomResizedCrop> random_resized_crop = {};
  std::int64_t crop_padding = 0;  // pixels of zeros around the image, of which a part of the image's extent is taken
  bool horizontal_flip = false;   // left and right change places, in each image with probability 1/2
  double rotation = 0;            // degrees: a turn by up to so much to either side; bilinear, zeros beyond the image
  std::optional<RandAugment> rand_augment = {};

  // Colours are changed by a factor from [max(0, 1 - x), 1 + x], in a random order, and clamped to [0, 1] each time, with grey
  // = 0.2989 red + 0.587 green + 0.114 blue. The definitions are those of torchvision's ColorJitter.
  double brightness = 0;  // x times the factor
  double contrast = 0;    // away from (> 1) or towards (< 1) the image's mean grey
  double saturation = 0;  // away from or towards each pixel's grey; nothing for images of one channel
  double hue = 0;         // in turns, up to 1/2: around the circle of colours by up to so much to either side

  std::optional<RandomErasing> random_erasing = {};

  // An image is mixed with the one before it in its step, as that one is after all of the above; the first with the last. So
  // the pairs do not depend on ranks and micro-batches. A share lambda of an image stays its own, drawn for each image from
  // Beta(alpha, alpha). torchvision's alpha is 1. With both, each is taken with probability 1/2.
  double mixup_alpha = 0;      // lambda x + (1 - lambda) partner (Zhang et al. 2017, arXiv 1710.09412)
  double cutmix_alpha = 0;     // a box with a share 1 - lambda of the area is the partner's (Yun et al. 2019, arXiv 1905.04899)
  double mix_probability = 1;  // of an image to be mixed at all
};

}  // namespace data
}  // namespace trireme
