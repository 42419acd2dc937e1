#include "data/images/random_boxes.hpp"

#include <algorithm>
#include <cmath>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t crop_stream = hash_name("trireme.data.random_resized_crop");
constexpr std::uint64_t erasing_stream = hash_name("trireme.data.random_erasing");
constexpr std::uint64_t box_attempts = 10;

struct BoxDraw {  // each attempt also takes two places, from 0 on
  enum : std::uint64_t { top = 2 * box_attempts, left, probability, count = 32 };
};

// The extents of a rectangle with ratio = dividend / divisor.
struct Extents {
  std::int64_t dividend;
  std::int64_t divisor;
};

Extents drawn_extents(const Draws& draws, std::uint64_t attempt, const ImageShape& shape, const std::array<double, 2>& scale,
                      const std::array<double, 2>& ratio) {
  const double area = static_cast<double>(shape.height * shape.width) * draws.between(scale[0], scale[1], 2 * attempt);
  const double drawn = std::exp(draws.between(std::log(ratio[0]), std::log(ratio[1]), 2 * attempt + 1));
  const auto rounded = [](double extent) { return static_cast<std::int64_t>(std::nearbyint(std::sqrt(extent))); };
  return {.dividend = rounded(area * drawn), .divisor = rounded(area / drawn)};
}

Box placed(const Draws& draws, const ImageShape& shape, std::int64_t height, std::int64_t width) {
  return {.top = draws.below(shape.height - height + 1, BoxDraw::top),
          .left = draws.below(shape.width - width + 1, BoxDraw::left),
          .height = height,
          .width = width};
}

void check_ranges(const char* name, const std::array<double, 2>& scale, const std::array<double, 2>& ratio) {
  require(scale[0] >= 0 && scale[0] <= scale[1] && scale[1] <= 1, "{}: the scale from {} to {} is not a range within [0, 1]",
          name, scale[0], scale[1]);
  require(ratio[0] >= 1e-3 && ratio[0] <= ratio[1] && ratio[1] <= 1e3,
          "{}: the ratio from {} to {} is not a range within [0.001, 1000]", name, ratio[0], ratio[1]);
}

}  // namespace

void check(const RandomResizedCrop& crop) { check_ranges("random_resized_crop", crop.scale, crop.ratio); }

void check(const RandomErasing& erasing) {
  check_ranges("random_erasing", erasing.scale, erasing.ratio);
  require(erasing.p >= 0 && erasing.p <= 1, "random_erasing: the probability {} does not lie in [0, 1]", erasing.p);
  require(std::isfinite(erasing.value), "random_erasing: the value {} is not finite", erasing.value);
}

Box crop_box(const RandomResizedCrop& crop, const ImageShape& shape, std::uint64_t seed, std::int64_t sample) {
  const Draws draws(seed, crop_stream, sample, BoxDraw::count);
  for (std::uint64_t attempt = 0; attempt < box_attempts; ++attempt) {
    const auto [width, height] = drawn_extents(draws, attempt, shape, crop.scale, crop.ratio);
    if (width > 0 && width <= shape.width && height > 0 && height <= shape.height) return placed(draws, shape, height, width);
  }
  const auto height = static_cast<double>(shape.height);
  const auto width = static_cast<double>(shape.width);
  Box box{.height = shape.height, .width = shape.width};
  if (width / height < crop.ratio[0]) {
    box.height = static_cast<std::int64_t>(std::nearbyint(width / crop.ratio[0]));
  } else if (width / height > crop.ratio[1]) {
    box.width = static_cast<std::int64_t>(std::nearbyint(height * crop.ratio[1]));
  }
  box.height = std::max<std::int64_t>(box.height, 1);  // for images that are one pixel thin
  box.width = std::max<std::int64_t>(box.width, 1);
  box.top = (shape.height - box.height) / 2;
  box.left = (shape.width - box.width) / 2;
  return box;
}

Box erased_box(const RandomErasing& erasing, const ImageShape& shape, std::uint64_t seed, std::int64_t sample) {
  const Draws draws(seed, erasing_stream, sample, BoxDraw::count);
  if (draws.between(0, 1, BoxDraw::probability) >= erasing.p) return {};
  for (std::uint64_t attempt = 0; attempt < box_attempts; ++attempt) {
    const auto [height, width] = drawn_extents(draws, attempt, shape, erasing.scale, erasing.ratio);
    if (height < shape.height && width < shape.width) return placed(draws, shape, height, width);
  }
  return {};
}

Box box_around(std::int64_t row, std::int64_t column, double share, const ImageShape& shape) {
  const double half = std::sqrt(share) / 2;
  const auto half_height = static_cast<std::int64_t>(half * static_cast<double>(shape.height));
  const auto half_width = static_cast<std::int64_t>(half * static_cast<double>(shape.width));
  Box box{.top = std::max<std::int64_t>(0, row - half_height), .left = std::max<std::int64_t>(0, column - half_width)};
  box.height = std::min(shape.height, row + half_height) - box.top;
  box.width = std::min(shape.width, column + half_width) - box.left;
  return box;
}

}  // namespace trireme::data
