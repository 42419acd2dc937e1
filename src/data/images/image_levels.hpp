#pragma once

#include "data/images/image_transforms.hpp"

namespace trireme::data {

// Changes of the values of an image as PIL's ImageOps makes them. Levels are whole numbers: 255 times a value, rounded.

void posterize(Image image, int bits);             // keeps the highest of the 8 bits of each level
void solarize(Image image, float threshold);       // 1 - x from the threshold, a level, on
void autocontrast(Image image);                    // each channel is stretched to [0, 1]; one of a single value stays
void equalize(Image image);                        // each channel's histogram becomes as even as levels allow
void adjust_sharpness(Image image, float factor);  // factor * x + (1 - factor) * x smoothed; the outermost pixels stay

}  // namespace trireme::data
