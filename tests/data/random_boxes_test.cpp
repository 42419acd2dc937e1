#include "data/images/random_boxes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "catch.hpp"
#include "data/images/augment.hpp"
#include "data/images/decode_picture.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/image_loader.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

constexpr std::int64_t samples = 2000;

ImageShape grey(std::int64_t height, std::int64_t width) { return {.height = height, .width = width, .channels = 1}; }

// Calls visit(box) for the box of each sample.
template <typename Options, typename Draw, typename Visit>
void visit_boxes(const Options& options, const ImageShape& shape, const Draw& draw, const Visit& visit) {
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const Box box = draw(options, shape, 7, sample);
    REQUIRE(box.top >= 0);
    REQUIRE(box.left >= 0);
    REQUIRE(box.top + box.height <= shape.height);
    REQUIRE(box.left + box.width <= shape.width);
    visit(box);
  }
}

Bytes random_bytes(std::int64_t count) {
  Bytes bytes;
  for (std::int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 7919 % 251));
  return bytes;
}

// An image, as a loader reads it.
void read_cropped(const Bytes& bytes, const Augmentation& augmentation, std::int64_t sample, Image into) {
  const ImageDataset one(into.shape, bytes, {0}, 1);
  read_augmented(read_pixels(one, 0, crop_rule(augmentation, 7, sample)).pixels, augmentation, 7, sample, into);
}

Floats erased(const RandomErasing& erasing, const ImageShape& shape, std::int64_t sample) {
  Floats values(static_cast<std::size_t>(shape.numel()), 0.5f);
  erase_box(erasing, 7, sample, Image{.pixels = values, .shape = shape});
  return values;
}

}  // namespace

TEST_CASE("a crop of one area and shape comes from every place equally often") {
  std::map<std::pair<std::int64_t, std::int64_t>, int> places;
  visit_boxes(RandomResizedCrop{.scale = {0.25, 0.25}, .ratio = {1, 1}}, grey(8, 8), crop_box, [&](const Box& box) {
    CHECK(box.height == 4);
    CHECK(box.width == 4);
    ++places[{box.top, box.left}];
  });
  REQUIRE(places.size() == 25);
  for (const auto& [place, count] : places) CHECK(std::abs(count - 80) < 5 * 9);  // standard deviation 8.8
}

TEST_CASE("the area of a crop and the logarithm of its ratio are spread evenly over their ranges") {
  std::vector<double> areas;
  std::vector<double> ratios;
  visit_boxes(RandomResizedCrop{.scale = {0.08, 0.5}}, grey(1000, 1000), crop_box, [&](const Box& box) {
    areas.push_back(static_cast<double>(box.height * box.width) / 1e6);
    ratios.push_back(std::log(static_cast<double>(box.width) / static_cast<double>(box.height)));
  });
  const auto check_even = [](const std::vector<double>& values, double low, double high) {
    const auto [least, most] = std::ranges::minmax(values);
    CHECK(least == Approx(low).margin(0.005));
    CHECK(most == Approx(high).margin(0.005));
    const double deviation = (high - low) / std::sqrt(12.0 * samples);
    CHECK(std::accumulate(values.begin(), values.end(), 0.0) / samples == Approx((low + high) / 2).margin(5 * deviation));
    const auto lower_half = std::ranges::count_if(values, [&](double value) { return value < (low + high) / 2; });
    CHECK(std::abs(lower_half - samples / 2) < 5 * 23);  // standard deviation 22.4
  };
  check_even(areas, 0.08, 0.5);
  check_even(ratios, std::log(0.75), std::log(4.0 / 3));
}

TEST_CASE("where no box fits, a crop is the largest in the middle whose shape is allowed") {
  const auto only = [](const RandomResizedCrop& crop, const ImageShape& shape) {
    std::set<std::pair<std::int64_t, std::int64_t>> extents;
    Box last;
    visit_boxes(crop, shape, crop_box, [&](const Box& box) {
      extents.insert({box.height, box.width});
      last = box;
    });
    CHECK(extents.size() == 1);
    return last;
  };
  const RandomResizedCrop square{.scale = {1, 1}, .ratio = {1, 1}};
  CHECK(only(square, grey(4, 9)) == Box{.top = 0, .left = 2, .height = 4, .width = 4});
  CHECK(only(square, grey(9, 4)) == Box{.top = 2, .left = 0, .height = 4, .width = 4});
  CHECK(only({.scale = {1, 1}, .ratio = {0.5, 0.5}}, grey(8, 8)) == Box{.top = 0, .left = 2, .height = 8, .width = 4});
  CHECK(only({.scale = {1, 1}, .ratio = {2, 2}}, grey(8, 8)) == Box{.top = 2, .left = 0, .height = 4, .width = 8});
  CHECK(only({}, grey(1, 1)) == Box{.height = 1, .width = 1});
  CHECK(only({.scale = {0, 0}, .ratio = {1, 1}}, grey(6, 6)) == Box{.height = 6, .width = 6});  // no pixel is no box
  CHECK(only({.scale = {1, 1}, .ratio = {10, 10}}, grey(8, 1)) == Box{.top = 3, .left = 0, .height = 1, .width = 1});
}

TEST_CASE("a crop is resized to the whole image, before all else") {
  const ImageShape shape{.height = 7, .width = 9, .channels = 3};
  const Bytes bytes = random_bytes(shape.numel());
  const Augmentation augmentation{.random_resized_crop = RandomResizedCrop{}};
  std::set<Floats> seen;
  for (std::int64_t sample = 0; sample < 30; ++sample) {
    const Box box = crop_box({}, shape, 7, sample);
    Picture part{.shape = {.height = box.height, .width = box.width, .channels = 3}, .pixels = {}};
    for (std::int64_t y = 0; y < box.height; ++y) {
      for (std::int64_t i = 0; i < box.width * 3; ++i) {
        part.pixels.push_back(bytes[static_cast<std::size_t>(((box.top + y) * 9 + box.left) * 3 + i)]);
      }
    }
    Floats expected;
    for (const std::uint8_t byte : resized(part, 7, 9).pixels) expected.push_back(static_cast<float>(byte) / 255);
    Floats got(bytes.size());
    read_cropped(bytes, augmentation, sample, Image{.pixels = got, .shape = shape});
    CHECK(got == expected);
    seen.insert(got);

    Augmentation flipped = augmentation;
    flipped.horizontal_flip = true;
    Floats other(bytes.size());
    read_cropped(bytes, flipped, sample, Image{.pixels = other, .shape = shape});
    flip_horizontally(Image{.pixels = expected, .shape = shape});
    CHECK((other == got || other == expected));
  }
  CHECK(seen.size() > 25);
}

TEST_CASE("a crop of the whole image changes nothing") {
  const ImageShape shape{.height = 5, .width = 5, .channels = 2};
  const Bytes bytes = random_bytes(shape.numel());
  Floats expected;
  for (const std::uint8_t byte : bytes) expected.push_back(static_cast<float>(byte) / 255);
  Floats got(bytes.size());
  const Augmentation augmentation{.random_resized_crop = RandomResizedCrop{.scale = {1, 1}, .ratio = {1, 1}}};
  read_cropped(bytes, augmentation, 3, Image{.pixels = got, .shape = shape});
  CHECK(got == expected);
}

TEST_CASE("boxes are erased with their probability, area and ratio") {
  int boxes = 0;
  std::vector<double> areas;
  std::vector<double> ratios;
  visit_boxes(RandomErasing{.p = 0.25}, grey(1000, 1000), erased_box, [&](const Box& box) {
    if (box.height == 0) return;
    ++boxes;
    areas.push_back(static_cast<double>(box.height * box.width) / 1e6);
    ratios.push_back(std::log(static_cast<double>(box.height) / static_cast<double>(box.width)));
  });
  CHECK(std::abs(boxes - samples / 4) < 5 * 20);  // standard deviation 19.4
  CHECK(std::ranges::min(areas) == Approx(0.02).margin(0.005));
  CHECK(std::ranges::max(areas) == Approx(0.33).margin(0.005));
  CHECK(std::ranges::min(ratios) == Approx(std::log(0.3)).margin(0.02));
  CHECK(std::ranges::max(ratios) == Approx(std::log(3.3)).margin(0.02));
}

TEST_CASE("an erased box gets one value, or normal ones, and the rest stays") {
  const ImageShape shape{.height = 20, .width = 10, .channels = 3};
  const RandomErasing erasing{.p = 1, .scale = {0.1, 0.1}, .ratio = {1, 1}, .value = -3};  // 20 pixels: 4 x 4
  RandomErasing random = erasing;
  random.random_values = true;
  double sum = 0;
  double squares = 0;
  int count = 0;
  for (std::int64_t sample = 0; sample < 200; ++sample) {
    const Box box = erased_box(erasing, shape, 7, sample);
    REQUIRE(box.height == 4);
    REQUIRE(box.width == 4);
    const Floats got = erased(erasing, shape, sample);
    const Floats noisy = erased(random, shape, sample);
    CHECK(noisy == erased(random, shape, sample));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto y = static_cast<std::int64_t>(i) / 30;
      const auto x = static_cast<std::int64_t>(i) % 30 / 3;
      const bool inside = y >= box.top && y < box.top + 4 && x >= box.left && x < box.left + 4;
      if (got[i] != (inside ? -3.0f : 0.5f)) FAIL("pixel " << y << ", " << x << " is " << got[i]);
      if ((noisy[i] == 0.5f) == inside) FAIL("pixel " << y << ", " << x << " is " << noisy[i]);
      if (!inside) continue;
      sum += noisy[i];
      squares += static_cast<double>(noisy[i]) * noisy[i];
      ++count;
    }
  }
  REQUIRE(count == 200 * 48);
  CHECK(sum / count == Approx(0).margin(5 / std::sqrt(count)));
  CHECK(squares / count == Approx(1).margin(5 * std::sqrt(2.0 / count)));
}

TEST_CASE("a box that is not smaller than the image is not erased") {
  const RandomErasing whole{.p = 1, .scale = {1, 1}, .ratio = {1, 1}};
  for (const ImageShape& shape : {grey(1, 1), grey(5, 5), grey(1, 8)}) {
    CHECK(erased(whole, shape, 3) == Floats(static_cast<std::size_t>(shape.numel()), 0.5f));
  }
  CHECK(erased({.p = 1}, grey(1, 1), 3) == Floats{0.5f});
  CHECK(erased({.p = 0}, grey(9, 9), 3) == Floats(81, 0.5f));
}

TEST_CASE("images are erased after their normalization") {
  const ImageDataset dataset({.height = 4, .width = 4, .channels = 1}, Bytes(16, 255), {0}, 1);
  const ImageLoader loader(dataset,
                           {.batch = {.batch_size = 1},
                            .normalization = {.mean = {0.5f}, .std = {0.25f}},
                            .augmentation = {.random_erasing = RandomErasing{.p = 1, .scale = {0.25, 0.25}, .ratio = {1, 1}}}});
  const auto pixels = loader.load(0).images.span();
  CHECK(std::ranges::count(pixels, 0.0f) == 4);
  CHECK(std::ranges::count(pixels, 2.0f) == 12);
}

TEST_CASE("crops and boxes that cannot be are refused") {
  const ImageDataset dataset({.height = 4, .width = 4, .channels = 2}, Bytes(32), {0}, 1);
  const auto crop_with = [&](const RandomResizedCrop& crop) {
    return ImageLoader(dataset, {.batch = {.batch_size = 1}, .augmentation = {.random_resized_crop = crop}});
  };
  const auto erase_with = [&](const RandomErasing& erasing) {
    return ImageLoader(dataset, {.batch = {.batch_size = 1}, .augmentation = {.random_erasing = erasing}});
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK_NOTHROW(crop_with({}));
  CHECK_NOTHROW(erase_with({}));
  CHECK_THROWS_WITH(crop_with({.scale = {0.5, 0.2}}),
                    ContainsSubstring("random_resized_crop") && ContainsSubstring("from 0.5 to 0.2"));
  CHECK_THROWS_WITH(crop_with({.scale = {0.5, 1.5}}), ContainsSubstring("[0, 1]"));
  CHECK_THROWS_WITH(crop_with({.ratio = {0, 1}}), ContainsSubstring("ratio from 0 to 1"));
  CHECK_THROWS_WITH(crop_with({.ratio = {1, infinity}}), ContainsSubstring("ratio"));
  CHECK_THROWS_WITH(crop_with({.scale = {std::numeric_limits<double>::quiet_NaN(), 1}}), ContainsSubstring("scale"));
  CHECK_THROWS_WITH(erase_with({.p = 1.5}), ContainsSubstring("random_erasing") && ContainsSubstring("probability 1.5"));
  CHECK_THROWS_WITH(erase_with({.scale = {-0.1, 0.2}}), ContainsSubstring("scale from -0.1"));
  CHECK_THROWS_WITH(erase_with({.value = infinity}), ContainsSubstring("not finite"));
}
