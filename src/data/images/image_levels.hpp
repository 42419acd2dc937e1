#pragma once

#include "data/images/image_transforms.hpp"

namespace trireme::data {

// Changes of an image's values as in PIL's ImageOps. A level is round(255 * value).

void posterize(Image image, int bits);             // keeps the highest `bits` of the 8 bits of each level
void solarize(Image image, float threshold);       // 1 - x for values from the threshold, a level, upwards
void autocontrast(Image image);                    // stretches each channel to [0, 1], unless it has only one value
void equalize(Image image);                        // makes each channel's histogram as uniform as levels allow
void adjust_sharpness(Image image, float factor);  // factor * x + (1 - factor) * smoothed x; border pixels stay

}  // namespace trireme::data
