#include "data/images/augment.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "data/images/mix.hpp"
#include "data/images/rand_augment.hpp"
#include "data/images/random_boxes.hpp"
#include "data/sources/draws.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t augmentation_stream = hash_name("trireme.data.augmentation");
constexpr std::uint64_t hue_stream = hash_name("trireme.data.augmentation.hue");
constexpr std::uint64_t erased_values_stream = hash_name("trireme.data.random_erasing.values");

struct Draw {
  enum : std::uint64_t { down, right, flip, rotation, brightness, contrast, saturation, colour_order, count };
};

struct HueDraw {
  enum : std::uint64_t { turns, order, count };
};

void adjust_colours(Image image, const Augmentation& augmentation, std::uint64_t seed, std::int64_t sample) {
  struct Adjustment {
    void (*adjust)(Image image, float factor);
    double strength;
    double factor;
  };
  const Draws draws(seed, augmentation_stream, sample, Draw::count);
  const Draws hue_draws(seed, hue_stream, sample, HueDraw::count);
  const auto factor = [&](double strength, std::uint64_t place) {
    return draws.between(std::max(0.0, 1 - strength), 1 + strength, place);
  };
  std::array<Adjustment, 4> adjustments = {
      {{adjust_brightness, augmentation.brightness, factor(augmentation.brightness, Draw::brightness)},
       {adjust_contrast, augmentation.contrast, factor(augmentation.contrast, Draw::contrast)},
       {adjust_saturation, augmentation.saturation, factor(augmentation.saturation, Draw::saturation)},
       {adjust_hue, augmentation.hue, hue_draws.between(-augmentation.hue, augmentation.hue, HueDraw::turns)}}};
  const auto first = adjustments.begin();
  const std::int64_t order = draws.below(6, Draw::colour_order);
  std::rotate(first, first + order % 3, first + 3);
  if (order >= 3) std::swap(adjustments[1], adjustments[2]);
  std::rotate(first + hue_draws.below(4, HueDraw::order), first + 3, adjustments.end());
  for (const auto& [adjust, strength, drawn] : adjustments) {
    if (strength > 0) adjust(image, static_cast<float>(drawn));
  }
}

}  // namespace

void check(const Augmentation& augmentation, const ImageShape& shape) {
  const std::int64_t least = std::min(shape.height, shape.width);
  require(augmentation.crop_padding >= 0 && augmentation.crop_padding < least,
          "a crop padding of {} pixels does not lie in [0, {}), the images' smaller extent", augmentation.crop_padding, least);
  require(augmentation.rotation >= 0 && augmentation.rotation <= 180, "a rotation by up to {} degrees does not lie in [0, 180]",
          augmentation.rotation);
  const auto check_strength = [](const char* name, double strength) {
    require(strength >= 0 && strength <= 10, "the {} {} does not lie in [0, 10]", name, strength);
  };
  check_strength("brightness", augmentation.brightness);
  check_strength("contrast", augmentation.contrast);
  check_strength("saturation", augmentation.saturation);
  require(augmentation.hue >= 0 && augmentation.hue <= 0.5, "a hue of up to {} turns does not lie in [0, 0.5]",
          augmentation.hue);
  const auto check_colours = [&](const char* name, double strength) {
    require(strength == 0 || shape.channels == 3 || shape.channels == 1,
            "{} is not defined for images of {} channels; leave it at 0", name, shape.channels);
  };
  check_colours("saturation", augmentation.saturation);
  check_colours("hue", augmentation.hue);
  if (augmentation.random_resized_crop) check(*augmentation.random_resized_crop);
  if (augmentation.rand_augment) check(*augmentation.rand_augment, shape);
  if (augmentation.random_erasing) check(*augmentation.random_erasing);
  const auto check_alpha = [](const char* name, double alpha) {
    require(alpha == 0 || (alpha >= 1e-3 && alpha <= 1e3), "the {} {} is neither 0 nor in [0.001, 1000]", name, alpha);
  };
  check_alpha("mixup_alpha", augmentation.mixup_alpha);
  check_alpha("cutmix_alpha", augmentation.cutmix_alpha);
  require(augmentation.mix_probability >= 0 && augmentation.mix_probability <= 1,
          "the mix_probability {} does not lie in [0, 1]", augmentation.mix_probability);
}

BoxRule crop_rule(const Augmentation& augmentation, std::uint64_t seed, std::int64_t sample) {
  if (!augmentation.random_resized_crop) return {};
  return [&crop = *augmentation.random_resized_crop, seed, sample](const ImageShape& shape) {
    return crop_box(crop, shape, seed, sample);
  };
}

void read_augmented(std::span<const std::uint8_t> bytes, const Augmentation& augmentation, std::uint64_t seed,
                    std::int64_t sample, Image into) {
  const Draws draws(seed, augmentation_stream, sample, Draw::count);
  const std::int64_t padding = augmentation.crop_padding;
  const auto shift = [&](std::uint64_t place) { return padding == 0 ? 0 : draws.below(2 * padding + 1, place) - padding; };
  read_shifted(bytes, shift(Draw::down), shift(Draw::right), into);
  if (augmentation.horizontal_flip && draws.below(2, Draw::flip) == 1) flip_horizontally(into);
  if (augmentation.rotation > 0) rotate(into, draws.between(-augmentation.rotation, augmentation.rotation, Draw::rotation));
  if (augmentation.rand_augment) apply(*augmentation.rand_augment, seed, sample, into);
  if (augmentation.brightness > 0 || augmentation.contrast > 0 || augmentation.saturation > 0 || augmentation.hue > 0) {
    adjust_colours(into, augmentation, seed, sample);
  }
}

void erase_box(const RandomErasing& erasing, std::uint64_t seed, std::int64_t sample, Image image) {
  const auto [height, width, channels] = image.shape;
  const Box box = erased_box(erasing, image.shape, seed, sample);
  const Draws draws(seed, erased_values_stream, sample, static_cast<std::uint64_t>(image.shape.numel()));
  for (std::int64_t y = box.top; y < box.top + box.height; ++y) {
    const std::int64_t first = (y * width + box.left) * channels;
    for (std::int64_t i = first; i < first + box.width * channels; ++i) {
      const auto at = static_cast<std::size_t>(i);
      image.pixels[at] = erasing.random_values ? static_cast<float>(draws.normal(at)) : erasing.value;
    }
  }
}

}  // namespace trireme::data
