#pragma once

#include <cstdint>
#include <span>

#include "trireme/data/images/image_dataset.hpp"

namespace trireme::data {

inline constexpr std::int64_t least_values = 1 << 14;  // of a batch that are worth a second thread

// The pixels of one image as floats, [height, width, channels].
struct Image {
  std::span<float> pixels;
  ImageShape shape;
};

// The bytes of an image as values in [0, 1], with pixel (y + down, x + right) at (y, x) and zeros where there is none.
void read_shifted(std::span<const std::uint8_t> bytes, std::int64_t down, std::int64_t right, Image into);

void flip_horizontally(Image image);  // left and right

// Turns the image by `degrees` counter-clockwise about its centre. Exact for multiples of 90.
void rotate(Image image, double degrees);

// Each clamps its results to [0, 1].
void adjust_brightness(Image image, float factor);  // factor * x
void adjust_contrast(Image image, float factor);    // factor * x + (1 - factor) * mean grey of the image
void adjust_saturation(Image image, float factor);  // factor * x + (1 - factor) * grey of the pixel

// Turns the hues of an image by a share of their circle: 1/3 makes green of red. Lightest and darkest channel keep their
// values.
void adjust_hue(Image image, float turns);

void check(const Normalization& normalization, std::int64_t channels);  // throws Error where it does not fit
void normalize(Image image, const Normalization& normalization);        // (x - mean) / std

}  // namespace trireme::data
