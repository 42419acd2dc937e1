#include "data/images/rand_augment.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "data/images/image_levels.hpp"
#include "data/sources/draws.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t operation_stream = hash_name("trireme.data.rand_augment");
constexpr int most_operations = 16;

// The largest magnitudes.
constexpr double most_shear = 0.3;
constexpr double most_translation = 150.0 / 331;  // of the image's extent
constexpr double most_degrees = 30;
constexpr double most_blend = 0.9;
constexpr double most_lost_bits = 4;

// Maps a place in the result to a place in the image. The upper left corner is (0, 0), the centre of the first pixel (1/2,
// 1/2).
struct AffineMap {
  double down_by_down = 1;
  double down_by_right = 0;
  double down = 0;
  double right_by_down = 0;
  double right_by_right = 1;
  double right = 0;
};

AffineMap turn_about_centre(double degrees, const ImageShape& shape) {
  const double sine = std::sin(degrees * std::numbers::pi / 180);
  const double cosine = std::cos(degrees * std::numbers::pi / 180);
  const double centre_y = static_cast<double>(shape.height) / 2;
  const double centre_x = static_cast<double>(shape.width) / 2;
  return {.down_by_down = cosine,
          .down_by_right = sine,
          .down = centre_y - cosine * centre_y - sine * centre_x,
          .right_by_down = -sine,
          .right_by_right = cosine,
          .right = centre_x + sine * centre_y - cosine * centre_x};
}

// Each pixel of the result takes the image's pixel that its centre maps to, or zeros outside of the image.
void warp(Image image, const AffineMap& map) {
  const auto [height, width, channels] = image.shape;
  const std::vector<float> before(image.pixels.begin(), image.pixels.end());
  std::ranges::fill(image.pixels, 0.0f);
  float* to = image.pixels.data();
  for (std::int64_t row = 0; row < height; ++row) {
    const double down = static_cast<double>(row) + 0.5;
    for (std::int64_t column = 0; column < width; ++column, to += channels) {
      const double right = static_cast<double>(column) + 0.5;
      const auto y = static_cast<std::int64_t>(std::floor(map.down_by_down * down + map.down_by_right * right + map.down));
      const auto x = static_cast<std::int64_t>(std::floor(map.right_by_down * down + map.right_by_right * right + map.right));
      if (y < 0 || y >= height || x < 0 || x >= width) continue;
      std::copy_n(before.data() + (y * width + x) * channels, channels, to);
    }
  }
}

double whole_pixels(double share, std::int64_t extent) { return std::trunc(share * static_cast<double>(extent)); }

}  // namespace

void check(const RandAugment& augment, const ImageShape& shape) {
  require(augment.num_ops >= 1 && augment.num_ops <= most_operations, "rand_augment: num_ops {} does not lie in [1, {}]",
          augment.num_ops, most_operations);
  require(augment.num_magnitude_bins >= 2, "rand_augment: num_magnitude_bins {} is below 2", augment.num_magnitude_bins);
  require(augment.magnitude >= 0 && augment.magnitude < augment.num_magnitude_bins,
          "rand_augment: the magnitude {} does not lie in [0, {}): it must be below num_magnitude_bins", augment.magnitude,
          augment.num_magnitude_bins);
  require(shape.channels == 1 || shape.channels == 3, "rand_augment: images must have 1 or 3 channels, got {}", shape.channels);
}

void apply(RandomOperation operation, double strength, int sign, Image image) {
  const double directed = sign * strength;
  const auto factor = static_cast<float>(1 + most_blend * directed);
  switch (operation) {
    case RandomOperation::identity: return;
    case RandomOperation::shear_x: return warp(image, {.right_by_down = most_shear * directed});
    case RandomOperation::shear_y: return warp(image, {.down_by_right = most_shear * directed});
    case RandomOperation::translate_x:
      return warp(image, {.right = -whole_pixels(most_translation * directed, image.shape.width)});
    case RandomOperation::translate_y:
      return warp(image, {.down = -whole_pixels(most_translation * directed, image.shape.height)});
    case RandomOperation::rotate: return warp(image, turn_about_centre(most_degrees * directed, image.shape));
    case RandomOperation::brightness: return adjust_brightness(image, factor);
    case RandomOperation::colour: return adjust_saturation(image, factor);
    case RandomOperation::contrast: return adjust_contrast(image, factor);
    case RandomOperation::sharpness: return adjust_sharpness(image, factor);
    case RandomOperation::posterize: return posterize(image, 8 - static_cast<int>(std::nearbyint(most_lost_bits * strength)));
    case RandomOperation::solarize: return solarize(image, static_cast<float>(255 * (1 - strength)));
    case RandomOperation::autocontrast: return autocontrast(image);
    case RandomOperation::equalize: return equalize(image);
  }
}

void apply(const RandAugment& augment, std::uint64_t seed, std::int64_t sample, Image image) {
  const Draws draws(seed, operation_stream, sample, 2 * most_operations);
  const double strength = static_cast<double>(augment.magnitude) / (augment.num_magnitude_bins - 1);
  for (std::uint64_t place = 0; place < 2 * static_cast<std::uint64_t>(augment.num_ops); place += 2) {
    const auto operation = static_cast<RandomOperation>(draws.below(num_random_operations, place));
    apply(operation, strength, draws.below(2, place + 1) == 0 ? 1 : -1, image);
  }
}

}  // namespace trireme::data
