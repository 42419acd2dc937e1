#include "data/images/image_transforms.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr std::array<float, 3> grey_weights = {0.2989f, 0.587f, 0.114f};  // of red, green and blue

float grey_of(const float* pixel, std::int64_t channels) {
  if (channels != std::ssize(grey_weights)) return pixel[0];
  return grey_weights[0] * pixel[0] + grey_weights[1] * pixel[1] + grey_weights[2] * pixel[2];
}

float blend(float value, float other, float factor) { return std::clamp(factor * value + (1 - factor) * other, 0.0f, 1.0f); }

struct Turn {
  float sine;
  float cosine;
};

// Handles whole quarter turns separately, because their sines and cosines are exact.
Turn turn_by(double degrees) {
  const double quarters = std::nearbyint(degrees / 90);
  const double rest = (degrees - 90 * quarters) * std::numbers::pi / 180;
  const auto sine = static_cast<float>(std::sin(rest));
  const auto cosine = static_cast<float>(std::cos(rest));
  switch (static_cast<int>(std::fmod(std::fmod(quarters, 4) + 4, 4))) {
    case 0: return {.sine = sine, .cosine = cosine};
    case 1: return {.sine = cosine, .cosine = -sine};
    case 2: return {.sine = -sine, .cosine = -cosine};
    default: return {.sine = -cosine, .cosine = sine};
  }
}

// The image padded with `border` zeros on each side.
std::vector<float> with_border(const Image& image, std::int64_t border) {
  const auto [height, width, channels] = image.shape;
  const std::int64_t row = (width + 2 * border) * channels;
  std::vector<float> padded(static_cast<std::size_t>((height + 2 * border) * row));
  for (std::int64_t y = 0; y < height; ++y) {
    std::copy_n(image.pixels.data() + y * width * channels, width * channels,
                padded.data() + (y + border) * row + border * channels);
  }
  return padded;
}

}  // namespace

void read_shifted(std::span<const std::uint8_t> bytes, std::int64_t down, std::int64_t right, Image into) {
  const auto [height, width, channels] = into.shape;
  std::ranges::fill(into.pixels, 0.0f);
  const std::int64_t first = std::clamp<std::int64_t>(-right, 0, width);  // first and last bound the columns inside the image
  const std::int64_t last = std::clamp<std::int64_t>(width - right, first, width);
  for (std::int64_t y = std::max<std::int64_t>(0, -down); y < std::min(height, height - down); ++y) {
    const std::uint8_t* from = bytes.data() + ((y + down) * width + first + right) * channels;
    float* to = into.pixels.data() + (y * width + first) * channels;
    for (std::int64_t i = 0; i < (last - first) * channels; ++i) to[i] = static_cast<float>(from[i]) / 255;
  }
}

void flip_horizontally(Image image) {
  const auto [height, width, channels] = image.shape;
  for (std::int64_t y = 0; y < height; ++y) {
    float* row = image.pixels.data() + y * width * channels;
    for (std::int64_t x = 0; x < width / 2; ++x) {
      std::swap_ranges(row + x * channels, row + (x + 1) * channels, row + (width - 1 - x) * channels);
    }
  }
}

void rotate(Image image, double degrees) {
  constexpr std::int64_t border = 2;  // zeros, which pixels outside of the image read
  const auto [height, width, channels] = image.shape;
  const std::vector<float> before = with_border(image, border);
  const std::int64_t row_size = (width + 2 * border) * channels;
  const auto [sine, cosine] = turn_by(degrees);
  const float centre_y = static_cast<float>(height - 1) / 2;
  const float centre_x = static_cast<float>(width - 1) / 2;
  const auto place = [](float at, std::int64_t size) {  // inside the padded image, where truncating rounds down
    return std::min(std::max(at, -1.0f), static_cast<float>(size)) + static_cast<float>(border);
  };
  float* to = image.pixels.data();
  for (std::int64_t row = 0; row < height; ++row) {
    const float down = static_cast<float>(row) - centre_y;
    for (std::int64_t column = 0; column < width; ++column) {
      const float right = static_cast<float>(column) - centre_x;
      const float from_y = place(centre_y + cosine * down + sine * right, height);
      const float from_x = place(centre_x - sine * down + cosine * right, width);
      const auto y = static_cast<std::int64_t>(from_y);
      const auto x = static_cast<std::int64_t>(from_x);
      const float part_y = from_y - static_cast<float>(y);
      const float part_x = from_x - static_cast<float>(x);
      const float* upper = before.data() + y * row_size + x * channels;
      const float* lower = upper + row_size;
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        *to++ = (1 - part_y) * ((1 - part_x) * upper[channel] + part_x * upper[channel + channels]) +
                part_y * ((1 - part_x) * lower[channel] + part_x * lower[channel + channels]);
      }
    }
  }
}

void adjust_brightness(Image image, float factor) {
  for (float& value : image.pixels) value = blend(value, 0, factor);
}

void adjust_contrast(Image image, float factor) {
  const std::int64_t channels = image.shape.channels;
  double sum = 0;
  for (std::size_t i = 0; i < image.pixels.size(); i += static_cast<std::size_t>(channels)) {
    sum += grey_of(&image.pixels[i], channels);
  }
  const auto mean = static_cast<float>(sum / static_cast<double>(image.shape.height * image.shape.width));
  for (float& value : image.pixels) value = blend(value, mean, factor);
}

void adjust_saturation(Image image, float factor) {
  const std::int64_t channels = image.shape.channels;
  if (channels == 1) return;
  for (float* pixel = image.pixels.data(); pixel != image.pixels.data() + image.pixels.size(); pixel += channels) {
    const float grey = grey_of(pixel, channels);
    for (std::int64_t channel = 0; channel < channels; ++channel) pixel[channel] = blend(pixel[channel], grey, factor);
  }
}

void adjust_hue(Image image, float turns) {
  if (image.shape.channels == 1) return;
  for (float* pixel = image.pixels.data(); pixel != image.pixels.data() + image.pixels.size(); pixel += 3) {
    const auto [least, most] = std::minmax({pixel[0], pixel[1], pixel[2]});
    const float range = most - least;
    if (range == 0) continue;
    const int highest = pixel[0] == most ? 0 : pixel[1] == most ? 1 : 2;
    // The hue in sixths of the circle: red is 0, green 2, blue 4.
    const float sixths =
        2 * static_cast<float>(highest) + (pixel[(highest + 1) % 3] - pixel[(highest + 2) % 3]) / range + 6 * turns;
    for (int channel = 0; channel < 3; ++channel) {
      const float apart = std::abs(sixths - 2 * static_cast<float>(channel));  // at most 8
      const float distance = std::min(apart, std::abs(6 - apart));             // the shorter way around
      pixel[channel] = least + range * std::clamp(2 - distance, 0.0f, 1.0f);
    }
  }
}

void check(const Normalization& normalization, std::int64_t channels) {
  const std::int64_t means = std::ssize(normalization.mean);
  const std::int64_t stds = std::ssize(normalization.std);
  require(means == stds && (means == 0 || means == channels),
          "a normalization of {} means and {} standard deviations does not fit images of {} channels", means, stds, channels);
  for (const float std : normalization.std) require(std > 0, "the standard deviation {} is not above 0", std);
}

void normalize(Image image, const Normalization& normalization) {
  const std::size_t channels = normalization.mean.size();
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const float mean = normalization.mean[channel];
    const float scale = 1 / normalization.std[channel];
    for (std::size_t i = channel; i < image.pixels.size(); i += channels) image.pixels[i] = (image.pixels[i] - mean) * scale;
  }
}

}  // namespace trireme::data
