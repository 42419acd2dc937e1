#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Random changes of training images, applied in this order; 0 and false leave an image alone. What is drawn for an image is a
// function of the seed and of the sample's number alone.
struct Augmentation {
  std::int64_t crop_padding = 0;  // pixels of zeros around the image, of which a part of the image's extent is taken
  bool horizontal_flip = false;   // left and right change places, in each image with probability 1/2
  double rotation = 0;            // degrees: a turn by up to so much to either side; bilinear, zeros beyond the image

  // Colours are changed by a factor from [max(0, 1 - x), 1 + x], in a random order, and clamped to [0, 1] each time, with grey
  // = 0.2989 red + 0.587 green + 0.114 blue. The definitions are those of torchvision's ColorJitter.
  double brightness = 0;  // x times the factor
  double contrast = 0;    // away from (> 1) or towards (< 1) the image's mean grey
  double saturation = 0;  // away from or towards each pixel's grey; nothing for images of one channel
};

}  // namespace data
}  // namespace trireme
