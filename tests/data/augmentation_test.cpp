#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "catch.hpp"
#include "data/images/augment.hpp"
#include "data/images/image_transforms.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/image_loader.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

constexpr ImageShape grey{.height = 3, .width = 4, .channels = 1};
const Bytes grey_bytes = {0, 50, 100, 150, 200, 250, 30, 80, 130, 180, 230, 10};
constexpr ImageShape colour{.height = 2, .width = 2, .channels = 3};
const Bytes colour_bytes = {10, 200, 30, 250, 128, 0, 60, 60, 60, 5, 90, 255};

Floats as_floats(const Bytes& bytes) {
  Floats values;
  for (const std::uint8_t byte : bytes) values.push_back(static_cast<float>(byte) / 255);
  return values;
}

template <typename Transform>
Floats transformed(Floats values, const ImageShape& shape, const Transform& transform) {
  transform(Image{.pixels = values, .shape = shape});
  return values;
}

Floats augmented(const Bytes& bytes, const ImageShape& shape, const Augmentation& augmentation, std::int64_t sample) {
  return transformed(Floats(bytes.size()), shape, [&](Image image) { read_augmented(bytes, augmentation, 7, sample, image); });
}

void check_equal(const Floats& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    CHECK(got[i] == Approx(expected[i]).margin(1e-6));
  }
}

Bytes random_bytes(std::size_t count) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 7919 % 256));
  return bytes;
}

// Samples of 0 to 999 for which `holds`.
template <typename Predicate>
int count_samples(const Predicate& holds) {
  int count = 0;
  for (std::int64_t sample = 0; sample < 1000; ++sample) count += holds(sample) ? 1 : 0;
  return count;
}

// Of a red pixel: towards yellow green grows, towards magenta blue.
float turn_of_red(double hue, std::int64_t sample) {
  const Floats values = augmented({255, 0, 0}, {1, 1, 3}, {.hue = hue}, sample);
  return (values[1] - values[2]) / 6;
}

}  // namespace

TEST_CASE("without augmentation an image stays as it is") {
  CHECK(augmented(colour_bytes, colour, {}, 0) == as_floats(colour_bytes));
}

TEST_CASE("a crop takes a part of the image with zeros around it") {
  const auto shifted = [](std::int64_t down, std::int64_t right) {
    return transformed(Floats(12, -1), grey, [&](Image image) { read_shifted(grey_bytes, down, right, image); });
  };
  CHECK(shifted(0, 0) == as_floats(grey_bytes));
  CHECK(shifted(1, 2) == as_floats({30, 80, 0, 0, 230, 10, 0, 0, 0, 0, 0, 0}));
  CHECK(shifted(-2, -1) == as_floats({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 50, 100}));
  CHECK(shifted(3, 0) == Floats(12));
  CHECK(shifted(0, -9) == Floats(12));
}

TEST_CASE("a random crop reaches every place and keeps colours together") {
  std::set<Floats> crops;
  const ImageShape shape{.height = 3, .width = 3, .channels = 3};
  const Bytes bytes = random_bytes(27);
  for (std::int64_t sample = 0; sample < 300; ++sample) crops.insert(augmented(bytes, shape, {.crop_padding = 1}, sample));
  std::set<Floats> expected;
  for (std::int64_t down = -1; down <= 1; ++down) {
    for (std::int64_t right = -1; right <= 1; ++right) {
      Floats crop(27);
      for (std::int64_t y = 0; y < 3; ++y) {
        for (std::int64_t x = 0; x < 3; ++x) {
          if (y + down < 0 || y + down > 2 || x + right < 0 || x + right > 2) continue;
          for (std::int64_t channel = 0; channel < 3; ++channel) {
            const auto from = static_cast<std::size_t>(((y + down) * 3 + x + right) * 3 + channel);
            crop[static_cast<std::size_t>((y * 3 + x) * 3 + channel)] = static_cast<float>(bytes[from]) / 255;
          }
        }
      }
      expected.insert(crop);
    }
  }
  CHECK(crops == expected);
}

TEST_CASE("a flip exchanges left and right and is its own inverse") {
  CHECK(transformed(as_floats(grey_bytes), grey, flip_horizontally) ==
        as_floats({150, 100, 50, 0, 80, 30, 250, 200, 10, 230, 180, 130}));
  const ImageShape odd{.height = 1, .width = 3, .channels = 2};
  const Floats once = transformed(as_floats({1, 2, 3, 4, 5, 6}), odd, flip_horizontally);
  CHECK(once == as_floats({5, 6, 3, 4, 1, 2}));
  CHECK(transformed(once, odd, flip_horizontally) == as_floats({1, 2, 3, 4, 5, 6}));
}

TEST_CASE("every second image is flipped") {
  const Floats flipped = transformed(as_floats(grey_bytes), grey, flip_horizontally);
  const int flips = count_samples(
      [&](std::int64_t sample) { return augmented(grey_bytes, grey, {.horizontal_flip = true}, sample) == flipped; });
  CHECK(std::abs(flips - 500) < 5 * 16);  // standard deviation 15.8
}

TEST_CASE("rotations by quarters are exact") {
  const ImageShape square{.height = 3, .width = 3, .channels = 2};
  const Bytes bytes = random_bytes(18);
  const Floats before = as_floats(bytes);
  Floats quarter(18);  // counter-clockwise: the right column becomes the upper row
  for (std::size_t y = 0; y < 3; ++y) {
    for (std::size_t x = 0; x < 3; ++x) {
      for (std::size_t channel = 0; channel < 2; ++channel)
        quarter[(y * 3 + x) * 2 + channel] = before[(x * 3 + 2 - y) * 2 + channel];
    }
  }
  const auto rotated = [&](double degrees) {
    return transformed(before, square, [&](Image image) { rotate(image, degrees); });
  };
  CHECK(rotated(0) == before);
  CHECK(rotated(90) == quarter);
  CHECK(rotated(-270) == quarter);
  Floats half;
  for (std::size_t pixel = 9; pixel-- > 0;) half.insert(half.end(), {before[pixel * 2], before[pixel * 2 + 1]});
  CHECK(rotated(180) == half);
  CHECK(rotated(-180) == half);
  CHECK(transformed(rotated(-90), square, [](Image image) { rotate(image, 90); }) == before);
}

// Expected: torch.nn.functional.grid_sample(bilinear, zeros, align_corners=False) on the turned grid of pixel centres, in
// float64.
TEST_CASE("rotations in between are bilinear with zeros outside") {
  const auto rotated = [](double degrees) {
    return transformed(as_floats(grey_bytes), grey, [&](Image image) { rotate(image, degrees); });
  };
  check_equal(rotated(30), {0.05277481575201966, 0.27160332629798795, 0.37165652297851637, 0.24223532793613067,
                            0.2354827243771259, 0.7442526942688762, 0.3537865214173983, 0.2280262309188614, 0.527448320732637,
                            0.7263826927077581, 0.6990354460171384, 0.24726701661145767});
  check_equal(rotated(90), {0.2450980392156863, 0.35294117647058826, 0.34313725490196084, 0.23529411764705882,
                            0.14705882352941177, 0.4215686274509804, 0.676470588235294, 0.4019607843137255,
                            0.049019607843137254, 0.4901960784313726, 0.7450980392156862, 0.303921568627451});
}

TEST_CASE("brightness multiplies and clamps") {
  check_equal(transformed(as_floats({0, 51, 102, 255}), {1, 4, 1}, [](Image image) { adjust_brightness(image, 1.5f); }),
              {0, 0.3, 0.6, 1});
}

// Expected: clamp(factor * x + (1 - factor) * other, 0, 1) computed by PyTorch in float64.
TEST_CASE("contrast and saturation blend with grey") {
  check_equal(transformed(as_floats(colour_bytes), colour, [](Image image) { adjust_contrast(image, 1.5f); }),
              {0, 0.9720301470588235, 0, 1, 0.5485007352941176, 0, 0.14850073529411761, 0.14850073529411761,
               0.14850073529411761, 0, 0.32497132352941177, 1});
  check_equal(transformed(as_floats(colour_bytes), colour, [](Image image) { adjust_saturation(image, 0.25f); }),
              {0.37394803921568626, 0.5602225490196078, 0.39355588235294114, 0.6858656862745097, 0.5662578431372549,
               0.4407676470588235, 0.2352764705882353, 0.2352764705882353, 0.2352764705882353, 0.2501799019607843,
               0.33351323529411764, 0.4952779411764706});
  check_equal(transformed(as_floats({0, 51, 102, 255}), {2, 2, 1}, [](Image image) { adjust_contrast(image, 0); }),
              {0.4, 0.4, 0.4, 0.4});
  CHECK(transformed(as_floats(grey_bytes), grey, [](Image image) { adjust_saturation(image, 0.3f); }) == as_floats(grey_bytes));
}

// Expected: torchvision 0.29's adjust_hue of a float64 tensor.
TEST_CASE("a hue is turned around the circle of colours") {
  const Bytes bytes = {5, 133, 67, 63, 121, 241, 243, 21, 117, 239, 9, 97};
  const auto turned = [](const Bytes& from, float turns) {
    return transformed(as_floats(from), colour, [&](Image image) { adjust_hue(image, turns); });
  };
  check_equal(turned(bytes, 0.1f), {0.01960783, 0.47921562, 0.52156866, 0.43843153, 0.24705881, 0.94509804, 0.95294118,
                                    0.22823502, 0.08235295, 0.93725491, 0.23137251, 0.03529412});
  check_equal(turned(bytes, -0.35f), {0.52156866, 0.21254903, 0.01960783, 0.54431373, 0.94509804, 0.24705881, 0.08235295,
                                      0.54588223, 0.95294118, 0.03529412, 0.47058854, 0.93725491});
  check_equal(turned(bytes, 0.5f), {0.52156866, 0.01960783, 0.27843139, 0.94509804, 0.71764696, 0.24705881, 0.08235295,
                                    0.95294118, 0.57647079, 0.03529412, 0.93725491, 0.59215671});
  const Bytes greys = {0, 0, 0, 255, 255, 255, 60, 60, 60, 1, 1, 1};
  CHECK(turned(greys, 0.3f) == as_floats(greys));
  CHECK(transformed(as_floats(grey_bytes), grey, [](Image image) { adjust_hue(image, 0.3f); }) == as_floats(grey_bytes));
  const Bytes primary = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 0};
  check_equal(turned(primary, 1.0f / 3), {0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1});
  check_equal(turned(primary, -1.0f / 3), {0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1});
}

TEST_CASE("turns of hue are spread evenly to both sides") {
  std::vector<float> turns;
  for (std::int64_t sample = 0; sample < 1000; ++sample) turns.push_back(turn_of_red(0.1, sample));
  const auto [least, most] = std::ranges::minmax(turns);
  CHECK(least == Approx(-0.1).margin(0.002));
  CHECK(most == Approx(0.1).margin(0.002));
  CHECK(std::accumulate(turns.begin(), turns.end(), 0.0) / 1000 == Approx(0).margin(5 * 0.2 / std::sqrt(12 * 1000.0)));
}

TEST_CASE("hues are turned before or after the other colours") {
  int before = 0;
  int after = 0;
  const ImageShape pixel{.height = 1, .width = 1, .channels = 3};
  const Bytes bytes = {240, 100, 20};
  for (std::int64_t sample = 0; sample < 200; ++sample) {
    const Floats got = augmented(bytes, pixel, {.brightness = 0.9, .hue = 0.15}, sample);
    const float factor = augmented({51, 51, 51}, pixel, {.brightness = 0.9}, sample)[0] * 5;
    const float turns = turn_of_red(0.15, sample);
    const auto is_in_order = [&](bool hue_first) {
      const Floats expected = transformed(as_floats(bytes), pixel, [&](Image image) {
        if (hue_first) adjust_hue(image, turns);
        adjust_brightness(image, factor);
        if (!hue_first) adjust_hue(image, turns);
      });
      return std::ranges::equal(expected, got, [](float a, float b) { return std::abs(a - b) < 1e-4f; });
    };
    const bool first = is_in_order(true);
    const bool last = is_in_order(false);
    CHECK((first || last));
    if (first == last) continue;  // they differ where brightness is clamped
    (first ? before : after)++;
  }
  CHECK(before > 10);
  CHECK(after > 10);
}

TEST_CASE("factors of brightness are spread evenly over their range") {
  std::vector<double> factors;
  for (std::int64_t sample = 0; sample < 1000; ++sample) {
    factors.push_back(augmented({51}, {1, 1, 1}, {.brightness = 0.4}, sample)[0] / 0.2);
  }
  const auto [least, most] = std::ranges::minmax(factors);
  CHECK(least == Approx(0.6).margin(0.01));
  CHECK(most == Approx(1.4).margin(0.01));
  CHECK(std::accumulate(factors.begin(), factors.end(), 0.0) / 1000 == Approx(1).margin(5 * 0.8 / std::sqrt(12 * 1000.0)));
}

TEST_CASE("colours are changed in all six orders") {
  struct Adjustment {
    void (*adjust)(Image, float);
    Augmentation alone;
  };
  const std::vector<Adjustment> adjustments = {
      {adjust_brightness, {.brightness = 0.5}}, {adjust_contrast, {.contrast = 0.5}}, {adjust_saturation, {.saturation = 0.5}}};
  // All three scale the distance of red and green by their factor, which is that of the same sample without the others.
  const auto factor = [&](std::size_t adjustment, std::int64_t sample) {
    const Floats values = augmented({102, 51, 51, 51, 51, 51}, {1, 2, 3}, adjustments[adjustment].alone, sample);
    return (values[0] - values[1]) / 0.2f;
  };
  std::set<std::vector<std::size_t>> found;
  for (std::int64_t sample = 0; sample < 400; ++sample) {
    const Floats got = augmented(colour_bytes, colour, {.brightness = 0.5, .contrast = 0.5, .saturation = 0.5}, sample);
    std::vector<std::vector<std::size_t>> fitting;  // orders differ where values are clamped in between
    std::vector<std::size_t> order = {0, 1, 2};
    do {
      Floats values = as_floats(colour_bytes);
      for (const std::size_t i : order) {
        values = transformed(values, colour, [&](Image image) { adjustments[i].adjust(image, factor(i, sample)); });
      }
      if (std::ranges::equal(values, got, [](float a, float b) { return std::abs(a - b) < 1e-5f; })) fitting.push_back(order);
    } while (std::ranges::next_permutation(order).found);
    CHECK_FALSE(fitting.empty());
    if (fitting.size() == 1) found.insert(fitting.front());
  }
  CHECK(found.size() == 6);
}

TEST_CASE("the draws of one transform do not depend on the others") {
  const Augmentation crop{.crop_padding = 2};
  const Augmentation both{.crop_padding = 2, .horizontal_flip = true};
  const ImageShape shape{.height = 4, .width = 4, .channels = 1};
  const Bytes bytes = random_bytes(16);
  int same = 0;
  for (std::int64_t sample = 0; sample < 100; ++sample) {
    const Floats cropped = augmented(bytes, shape, crop, sample);
    const Floats got = augmented(bytes, shape, both, sample);
    same += got == cropped ? 1 : 0;
    CHECK((got == cropped || got == transformed(cropped, shape, flip_horizontally)));
  }
  CHECK(same > 20);
  CHECK(same < 80);
}

TEST_CASE("augmentation differs between samples, epochs and seeds") {
  const ImageDataset dataset({.height = 8, .width = 8, .channels = 1}, random_bytes(64), {0}, 1);
  std::set<Floats> images;
  for (const std::uint64_t seed : {1, 2}) {
    const ImageLoader loader(dataset, {.batch = {.batch_size = 1, .seed = seed}, .augmentation = {.rotation = 20}});
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
      const auto pixels = loader.load(epoch).images.span();
      images.insert(Floats(pixels.begin(), pixels.end()));
      CHECK(std::ranges::equal(pixels, loader.load(epoch).images.span()));
    }
  }
  CHECK(images.size() == 8);
}

TEST_CASE("augmentations that cannot be are refused") {
  const ImageDataset dataset({.height = 4, .width = 8, .channels = 2}, Bytes(64), {0}, 1);
  const auto load_with = [&](const Augmentation& augmentation) {
    return ImageLoader(dataset, {.batch = {.batch_size = 1}, .augmentation = augmentation});
  };
  CHECK_THROWS_WITH(load_with({.crop_padding = 4}), ContainsSubstring("crop padding of 4") && ContainsSubstring("[0, 4)"));
  CHECK_THROWS_WITH(load_with({.rotation = -1}), ContainsSubstring("-1 degrees"));
  CHECK_THROWS_WITH(load_with({.brightness = -0.1}), ContainsSubstring("brightness -0.1"));
  CHECK_THROWS_WITH(load_with({.contrast = 11}), ContainsSubstring("contrast 11"));
  CHECK_THROWS_WITH(load_with({.saturation = 0.5}), ContainsSubstring("saturation") && ContainsSubstring("2 channels"));
  CHECK_THROWS_WITH(load_with({.hue = 0.1}), ContainsSubstring("hue") && ContainsSubstring("2 channels"));
  CHECK_THROWS_WITH(load_with({.hue = 0.6}), ContainsSubstring("0.6 turns"));
}
