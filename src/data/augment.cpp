#include "data/augment.hpp"

#include <algorithm>
#include <array>

#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t augmentation_stream = hash_name("trireme.data.augmentation");

enum class Draw : std::uint8_t { down, right, flip, rotation, brightness, contrast, saturation, colour_order };
constexpr std::uint64_t draws_of_sample = 8;

// The random numbers of one sample: each has a place of its own, so that one transform changes nothing for the others.
class Draws {
 public:
  Draws(std::uint64_t seed, std::int64_t sample) : seed_(seed), first_(static_cast<std::uint64_t>(sample) * draws_of_sample) {}

  std::int64_t below(std::int64_t bound, Draw draw) const {  // bound <= 2^31
    const std::uint64_t word = philox(seed_, augmentation_stream, first_ + static_cast<std::uint64_t>(draw))[0];
    return static_cast<std::int64_t>((word * static_cast<std::uint64_t>(bound)) >> 32);
  }

  double between(double low, double high, Draw draw) const {
    return low + (high - low) * philox_uniform(seed_, augmentation_stream, first_ + static_cast<std::uint64_t>(draw));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t first_;
};

void adjust_colours(Image image, const Augmentation& augmentation, const Draws& draws) {
  struct Adjustment {
    void (*adjust)(Image image, float factor);
    double strength;
    Draw draw;
  };
  std::array<Adjustment, 3> adjustments = {{{adjust_brightness, augmentation.brightness, Draw::brightness},
                                            {adjust_contrast, augmentation.contrast, Draw::contrast},
                                            {adjust_saturation, augmentation.saturation, Draw::saturation}}};
  const std::int64_t order = draws.below(6, Draw::colour_order);
  std::ranges::rotate(adjustments, adjustments.begin() + order % 3);
  if (order >= 3) std::swap(adjustments[1], adjustments[2]);
  for (const auto& [adjust, strength, draw] : adjustments) {
    if (strength > 0) adjust(image, static_cast<float>(draws.between(std::max(0.0, 1 - strength), 1 + strength, draw)));
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
  require(augmentation.saturation == 0 || shape.channels == 3 || shape.channels == 1,
          "the saturation of images of {} channels is not known; leave it at 0", shape.channels);
}

void read_augmented(std::span<const std::uint8_t> bytes, const Augmentation& augmentation, std::uint64_t seed,
                    std::int64_t sample, Image into) {
  const Draws draws(seed, sample);
  const std::int64_t padding = augmentation.crop_padding;
  const auto shift = [&](Draw draw) { return padding == 0 ? 0 : draws.below(2 * padding + 1, draw) - padding; };
  read_shifted(bytes, shift(Draw::down), shift(Draw::right), into);
  if (augmentation.horizontal_flip && draws.below(2, Draw::flip) == 1) flip_horizontally(into);
  if (augmentation.rotation > 0) rotate(into, draws.between(-augmentation.rotation, augmentation.rotation, Draw::rotation));
  if (augmentation.brightness > 0 || augmentation.contrast > 0 || augmentation.saturation > 0) {
    adjust_colours(into, augmentation, draws);
  }
}

}  // namespace trireme::data
