#pragma once

#include <cstdint>
#include <span>

#include "trireme/data/images/image_dataset.hpp"

namespace trireme::data {

inline constexpr std::int64_t least_values = 1 << 14;  // smallest number of values in a batch for which several threads pay off

// The pixels of one image as floats, [height, width, channels].
struct Image {
  std::span<float> pixels;
  ImageShape shape;
};

// Writes an image's bytes as values in [0, 1]. Pixel (y, x) comes from (y + down, x + right); zero where this is outside.
void read_shifted(std::span<const std::uint8_t> bytes, std::int64_t down, std::int64_t right, Image into);

void flip_horizontally(Image image);  // swaps left and right

// Turns the image by `degrees` counter-clockwise about its centre. Exact for multiples of 90.
void rotate(Image image, double degrees);

// These clamp their results to [0, 1].
void adjust_brightness(Image image, float factor);  // factor * x
void adjust_contrast(Image image, float factor);    // factor * x + (1 - factor) * mean grey of the image
void adjust_saturation(Image image, float factor);  // factor * x + (1 - factor) * grey of the pixel

// Shifts the hue of each pixel by a share of the colour circle: 1/3 turns red to green. A pixel's largest and smallest channel
// values stay.
void adjust_hue(Image image, float turns);

void check(const Normalization& normalization, std::int64_t channels);  // throws Error where it does not match
void normalize(Image image, const Normalization& normalization);        // (x - mean) / std

}  // namespace trireme::data
