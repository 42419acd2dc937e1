#include "data/images/rand_augment.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "catch.hpp"
#include "data/images/image_levels.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/loaders/image_loader.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

// What one operation makes of a picture, at `magnitude` of 30.
struct Expected {
  RandomOperation operation;
  int magnitude;
  int sign;
  std::vector<int> levels;
};

Floats as_floats(const Bytes& bytes) {
  Floats values;
  for (const std::uint8_t byte : bytes) values.push_back(static_cast<float>(byte) / 255);
  return values;
}

Floats applied(RandomOperation operation, double strength, int sign, Floats values, const ImageShape& shape) {
  apply(operation, strength, sign, Image{.pixels = values, .shape = shape});
  return values;
}

void check_all(const std::vector<Expected>& all, const Floats& picture, const ImageShape& shape, int margin) {
  for (const Expected& expected : all) {
    INFO("operation " << static_cast<int>(expected.operation) << " magnitude " << expected.magnitude << " sign "
                      << expected.sign);
    const Floats got = applied(expected.operation, expected.magnitude / 30.0, expected.sign, picture, shape);
    REQUIRE(got.size() == expected.levels.size());
    int furthest = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      furthest = std::max(furthest, std::abs(static_cast<int>(255 * got[i] + 0.01f) - expected.levels[i]));
    }
    CHECK(furthest <= margin);
  }
}

Floats random_picture(const ImageShape& shape) {
  Bytes bytes;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    bytes.push_back(static_cast<std::uint8_t>(20 + philox(1, 2, static_cast<std::uint64_t>(i))[0] % 200));
  }
  return as_floats(bytes);
}

Floats drawn(const RandAugment& augment, std::int64_t sample, Floats values, const ImageShape& shape) {
  apply(augment, 7, sample, Image{.pixels = values, .shape = shape});
  return values;
}

constexpr bool has_sign(RandomOperation operation) {
  return operation >= RandomOperation::shear_x && operation <= RandomOperation::sharpness;
}

}  // namespace

// Expected: torchvision 0.29's RandAugment on a PIL 13 picture whose pixels are numbered from 1.
TEST_CASE("operations that move pixels take the same ones as torchvision") {
  const std::vector<Expected> all = {
      {RandomOperation::shear_x, 30, -1, {1, 2,  3,  4,  5,  6,  7,  8, 9,  10, 11, 12, 13, 14, 0, 15, 16, 17, 18, 19, 20,
                                          0, 22, 23, 24, 25, 26, 27, 0, 29, 30, 31, 32, 33, 34, 0, 0,  36, 37, 38, 39, 40}},
      {RandomOperation::shear_x, 24, 1, {1,  2,  3,  4,  5,  6,  7, 8,  9,  10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 0,
                                         23, 24, 25, 26, 27, 28, 0, 30, 31, 32, 33, 34, 35, 0,  37, 38, 39, 40, 41, 42, 0}},
      {RandomOperation::shear_y, 9, 1, {1,  2,  3,  4,  5,  6,  14, 8,  9,  10, 11, 12, 13, 21, 15, 16, 17, 18, 19, 20, 28,
                                        22, 23, 24, 25, 26, 27, 35, 29, 30, 31, 32, 33, 34, 42, 36, 37, 38, 39, 40, 41, 0}},
      {RandomOperation::shear_y, 30, -1, {1,  2,  0,  0,  0,  0,  0,  8,  9,  3,  4,  5,  0,  0,  15, 16, 10, 11, 12, 6,  7,
                                          22, 23, 17, 18, 19, 13, 14, 29, 30, 24, 25, 26, 20, 21, 36, 37, 31, 32, 33, 27, 28}},
      {RandomOperation::translate_x, 30, -1, {4,  5,  6,  7,  0, 0, 0, 11, 12, 13, 14, 0, 0, 0, 18, 19, 20, 21, 0, 0, 0,
                                              25, 26, 27, 28, 0, 0, 0, 32, 33, 34, 35, 0, 0, 0, 39, 40, 41, 42, 0, 0, 0}},
      {RandomOperation::translate_x, 14, 1, {0, 1,  2,  3,  4,  5,  6,  0, 8,  9,  10, 11, 12, 13, 0, 15, 16, 17, 18, 19, 20,
                                             0, 22, 23, 24, 25, 26, 27, 0, 29, 30, 31, 32, 33, 34, 0, 36, 37, 38, 39, 40, 41}},
      {RandomOperation::translate_y, 30, -1, {15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                              29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42,
                                              0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0}},
      {RandomOperation::translate_y, 18, 1, {0,  0,  0,  0,  0,  0,  0,  1,  2,  3,  4,  5,  6,  7,
                                             8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                             22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35}},
      {RandomOperation::rotate, 9, 1, {1,  2,  3,  4,  5,  6,  14, 8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                       22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 29, 37, 38, 39, 40, 41, 42}},
      {RandomOperation::rotate, 30, -1, {0,  8,  9,  3,  4,  0,  0,  22, 16, 16, 10, 11, 5,  6,  29, 23, 24, 18, 19, 12, 13,
                                         30, 31, 24, 25, 19, 20, 14, 37, 38, 32, 33, 27, 27, 21, 0,  0,  39, 40, 34, 35, 0}},
  };
  Bytes bytes;
  for (std::uint8_t i = 1; i <= 42; ++i) bytes.push_back(i);
  check_all(all, as_floats(bytes), {.height = 6, .width = 7, .channels = 1}, 0);
}

// Expected: torchvision 0.29's RandAugment on a PIL 13 picture. PIL keeps whole levels in between.
TEST_CASE("operations on colours give the levels of torchvision") {
  const std::vector<Expected> near = {
      {RandomOperation::brightness, 9, -1, {3,   97,  48, 45, 88,  175, 121, 113, 149, 44,  171, 156, 0,   76,  10,
                                            177, 15,  85, 13, 174, 6,   70,  180, 148, 161, 32,  136, 98,  105, 158,
                                            69,  25,  27, 73, 165, 116, 111, 152, 51,  183, 173, 21,  101, 40,  24,
                                            53,  127, 60, 38, 62,  130, 57,  29,  47,  110, 31,  184, 9,   66,  168}},
      {RandomOperation::brightness, 27, 1, {9,   240, 121, 114, 219, 255, 255, 255, 255, 110, 255, 255, 1,   190, 27,
                                            255, 38,  211, 34,  255, 16,  175, 255, 255, 255, 81,  255, 244, 255, 255,
                                            171, 63,  66,  182, 255, 255, 255, 255, 128, 255, 255, 52,  251, 99,  59,
                                            132, 255, 150, 95,  153, 255, 142, 74,  117, 255, 77,  255, 23,  164, 255}},
      {RandomOperation::colour, 9, -1, {27,  120, 72,  77,  119, 207, 166, 157, 193, 93,  220, 205, 18,  93,  28,
                                        203, 41,  111, 53,  214, 46,  124, 233, 201, 192, 63,  167, 139, 146, 198,
                                        83,  39,  41,  122, 214, 165, 159, 200, 99,  241, 231, 79,  122, 61,  45,
                                        89,  163, 96,  61,  85,  153, 72,  44,  62,  136, 58,  211, 32,  89,  191}},
      {RandomOperation::colour, 27, 1, {0,   170, 50,  19, 124, 255, 169, 147, 238, 0,   255, 242, 0,   138, 0,
                                        255, 0,   132, 0,  255, 0,   16,  255, 207, 255, 0,   246, 122, 140, 255,
                                        129, 20,  24,  35, 255, 140, 133, 234, 0,   255, 253, 0,   188, 36,  0,
                                        23,  208, 41,  26, 84,  254, 98,  29,  73,  193, 0,   255, 0,   96,  255}},
      {RandomOperation::contrast, 9, -1, {37,  130, 82,  79,  121, 209, 155, 146, 183, 78,  205, 190, 34,  110, 44,
                                          210, 48,  118, 47,  207, 40,  104, 213, 181, 194, 66,  169, 132, 139, 191,
                                          102, 59,  60,  107, 199, 149, 145, 186, 85,  216, 206, 54,  134, 73,  57,
                                          86,  161, 94,  72,  95,  164, 91,  63,  80,  143, 64,  218, 42,  99,  202}},
      {RandomOperation::contrast, 27, 1, {0,   140, 20,  13, 118, 255, 201, 180, 255, 9,   255, 255, 0,   89,  0,
                                          255, 0,   111, 0,  255, 0,   75,  255, 255, 255, 0,   238, 143, 162, 255,
                                          71,  0,   0,   82, 255, 187, 176, 255, 28,  255, 255, 0,   151, 0,   0,
                                          31,  216, 49,  0,  53,  223, 42,  0,   17,  172, 0,   255, 0,   64,  255}},
      {RandomOperation::sharpness, 9, -1, {5,   133, 67,  63,  121, 241, 167, 155, 205, 61,  235, 215, 1,   105, 15,
                                           243, 21,  117, 34,  223, 30,  102, 236, 192, 205, 66,  176, 135, 145, 217,
                                           95,  35,  37,  101, 211, 148, 147, 198, 81,  229, 215, 50,  139, 55,  33,
                                           73,  175, 83,  53,  85,  179, 79,  41,  65,  151, 43,  253, 13,  91,  231}},
      {RandomOperation::sharpness, 27, 1, {5,   133, 67,  63,  121, 241, 167, 155, 205, 61,  235, 215, 1,   105, 15,
                                           243, 21,  117, 0,   255, 0,   80,  255, 234, 255, 0,   218, 135, 145, 217,
                                           95,  35,  37,  101, 255, 190, 168, 240, 38,  255, 255, 0,   139, 55,  33,
                                           73,  175, 83,  53,  85,  179, 79,  41,  65,  151, 43,  253, 13,  91,  231}},
      {RandomOperation::autocontrast, 9, 1, {4,   126, 60,  63,  112, 242, 169, 151, 204, 61,  241, 215, 0,   94,  6,
                                             246, 0,   112, 18,  245, 0,   97,  255, 202, 224, 27,  186, 136, 139, 217,
                                             95,  15,  29,  102, 232, 156, 155, 212, 64,  254, 243, 20,  140, 38,  25,
                                             73,  173, 77,  53,  72,  177, 79,  22,  58,  153, 24,  255, 12,  78,  232}},
  };
  const std::vector<Expected> exact = {
      {RandomOperation::posterize, 9, 1, {4,   132, 66,  62,  120, 240, 166, 154, 204, 60,  234, 214, 0,   104, 14,
                                          242, 20,  116, 18,  238, 8,   96,  246, 202, 220, 44,  186, 134, 144, 216,
                                          94,  34,  36,  100, 226, 158, 152, 208, 70,  250, 236, 28,  138, 54,  32,
                                          72,  174, 82,  52,  84,  178, 78,  40,  64,  150, 42,  252, 12,  90,  230}},
      {RandomOperation::posterize, 27, -1, {0,   128, 64,  48, 112, 240, 160, 144, 192, 48,  224, 208, 0,   96,  0,
                                            240, 16,  112, 16, 224, 0,   96,  240, 192, 208, 32,  176, 128, 144, 208,
                                            80,  32,  32,  96, 224, 144, 144, 208, 64,  240, 224, 16,  128, 48,  32,
                                            64,  160, 80,  48, 80,  176, 64,  32,  64,  144, 32,  240, 0,   80,  224}},
      {RandomOperation::solarize, 9, 1, {5,  133, 67,  63,  121, 14,  167, 155, 50, 61,  20, 40, 1,   105, 15,
                                         12, 21,  117, 19,  16,  9,   97,  8,   52, 34,  45, 68, 135, 145, 38,
                                         95, 35,  37,  101, 28,  159, 153, 46,  71, 4,   18, 29, 139, 55,  33,
                                         73, 175, 83,  53,  85,  76,  79,  41,  65, 151, 43, 2,  13,  91,  24}},
      {RandomOperation::solarize, 30, 1, {250, 122, 188, 192, 134, 14,  88,  100, 50,  194, 20,  40,  254, 150, 240,
                                          12,  234, 138, 236, 16,  246, 158, 8,   52,  34,  210, 68,  120, 110, 38,
                                          160, 220, 218, 154, 28,  96,  102, 46,  184, 4,   18,  226, 116, 200, 222,
                                          182, 80,  172, 202, 170, 76,  176, 214, 190, 104, 212, 2,   242, 164, 24}},
  };
  Bytes bytes;
  for (int i = 0; i < 60; ++i) bytes.push_back(static_cast<std::uint8_t>((i * 97 + i * i * 31 + 5) % 256));
  check_all(exact, as_floats(bytes), {.height = 4, .width = 5, .channels = 3}, 0);
  check_all(near, as_floats(bytes), {.height = 4, .width = 5, .channels = 3}, 1);
}

// Expected: PIL 13's ImageOps.equalize.
TEST_CASE("equalize gives PIL's levels") {
  const auto equalized = [](const std::vector<std::uint8_t>& levels, const std::vector<std::size_t>& counts) {
    Floats values;
    for (std::size_t i = 0; i < levels.size(); ++i) values.insert(values.end(), counts[i], static_cast<float>(levels[i]) / 255);
    equalize(Image{.pixels = values, .shape = {.height = 1, .width = std::ssize(values), .channels = 1}});
    std::vector<int> found;
    std::size_t at = 0;
    for (const std::size_t count : counts) {
      found.push_back(static_cast<int>(std::lround(255 * values[at])));
      CHECK(std::ranges::count(values, values[at]) >= static_cast<std::ptrdiff_t>(count));
      at += count;
    }
    return found;
  };
  CHECK(equalized({10, 60, 61, 200, 255}, {50, 100, 30, 120, 100}) == std::vector<int>{0, 50, 150, 180, 255});
  CHECK(equalized({10, 60, 200}, {300, 90, 10}) == std::vector<int>{0, 255, 255});
  CHECK(equalized({10, 60, 200}, {100, 154, 246}) == std::vector<int>{10, 60, 200});  // too few for a step: as they are
}

TEST_CASE("equalize and autocontrast change each channel by itself") {
  const ImageShape shape{.height = 20, .width = 20, .channels = 3};
  const Floats picture = random_picture(shape);
  for (const RandomOperation operation : {RandomOperation::equalize, RandomOperation::autocontrast}) {
    const Floats got = applied(operation, 0, 1, picture, shape);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      Floats alone;
      Floats of_all;
      for (std::size_t i = channel; i < picture.size(); i += 3) {
        alone.push_back(picture[i]);
        of_all.push_back(got[i]);
      }
      CHECK(applied(operation, 0, 1, alone, {.height = 20, .width = 20, .channels = 1}) == of_all);
      CHECK(of_all != alone);
    }
  }
}

TEST_CASE("operations leave small and constant pictures whole") {
  for (const std::int64_t channels : {1, 3}) {
    for (const std::int64_t height : {1, 2, 5}) {
      for (const std::int64_t width : {1, 2, 5}) {
        const ImageShape shape{.height = height, .width = width, .channels = channels};
        for (const float value : {0.0f, 51.0f / 255, 1.0f}) {
          const Floats constant(static_cast<std::size_t>(shape.numel()), value);
          for (int operation = 0; operation < num_random_operations; ++operation) {
            for (const double strength : {0.0, 0.3, 1.0}) {
              for (const int sign : {-1, 1}) {
                const Floats got = applied(static_cast<RandomOperation>(operation), strength, sign, constant, shape);
                REQUIRE(std::ranges::all_of(got, [](float x) { return x >= 0 && x <= 1; }));
              }
            }
          }
          CHECK(applied(RandomOperation::equalize, 1, 1, constant, shape) == constant);
          CHECK(applied(RandomOperation::autocontrast, 1, 1, constant, shape) == constant);
        }
      }
    }
  }
}

TEST_CASE("every operation of RandAugment is drawn equally often, to either side") {
  const ImageShape shape{.height = 18, .width = 18, .channels = 3};
  const Floats picture = random_picture(shape);
  const RandAugment one{.num_ops = 1, .magnitude = 27};
  std::map<Floats, std::pair<RandomOperation, int>> candidates;
  for (int i = 0; i < num_random_operations; ++i) {
    const auto operation = static_cast<RandomOperation>(i);
    candidates[applied(operation, 0.9, 1, picture, shape)] = {operation, 1};
    if (has_sign(operation)) candidates[applied(operation, 0.9, -1, picture, shape)] = {operation, -1};
  }
  REQUIRE(candidates.size() == 14 + 9);
  std::map<std::pair<RandomOperation, int>, int> counts;
  constexpr int samples = 2800;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const auto found = candidates.find(drawn(one, sample, picture, shape));
    REQUIRE(found != candidates.end());
    ++counts[found->second];
  }
  REQUIRE(counts.size() == candidates.size());
  for (const auto& [found, count] : counts) {
    const double share = has_sign(found.first) ? 1 / 28.0 : 1 / 14.0;
    INFO("operation " << static_cast<int>(found.first) << " sign " << found.second);
    CHECK(std::abs(count - samples * share) < 5 * std::sqrt(samples * share));
  }
}

TEST_CASE("operations follow each other, and a further one changes nothing of the first") {
  const ImageShape shape{.height = 18, .width = 18, .channels = 3};
  const Floats picture = random_picture(shape);
  std::set<int> second;
  for (std::int64_t sample = 0; sample < 100; ++sample) {
    const Floats first = drawn({.num_ops = 1, .magnitude = 15}, sample, picture, shape);
    const Floats both = drawn({.num_ops = 2, .magnitude = 15}, sample, picture, shape);
    int fitting = -1;
    for (int i = 0; i < num_random_operations; ++i) {
      for (const int sign : {-1, 1}) {
        if (applied(static_cast<RandomOperation>(i), 0.5, sign, first, shape) == both) fitting = i;
      }
    }
    REQUIRE(fitting >= 0);
    second.insert(fitting);
  }
  CHECK(second.size() > 10);
}

TEST_CASE("RandAugment differs between samples and seeds and not between calls") {
  const ImageDataset dataset({.height = 8, .width = 8, .channels = 3}, Bytes(192, 90), {0}, 1);
  const auto load = [&](std::uint64_t seed, std::int64_t step) {
    const ImageLoader loader(
        dataset, {.batch = {.batch_size = 1, .seed = seed}, .augmentation = {.rand_augment = RandAugment{.num_ops = 3}}});
    const auto pixels = loader.load(step).images.span();
    return Floats(pixels.begin(), pixels.end());
  };
  std::set<Floats> images;
  for (std::int64_t step = 0; step < 10; ++step) {
    CHECK(load(1, step) == load(1, step));
    images.insert(load(1, step));
    images.insert(load(2, step));
  }
  CHECK(images.size() > 10);
}

TEST_CASE("RandAugment that cannot be is refused") {
  const auto load_with = [&](const RandAugment& augment, std::int64_t channels = 3) {
    const ImageShape shape{.height = 4, .width = 4, .channels = channels};
    const ImageDataset dataset(shape, Bytes(static_cast<std::size_t>(shape.numel())), {0}, 1);
    return ImageLoader(dataset, {.batch = {.batch_size = 1}, .augmentation = {.rand_augment = augment}});
  };
  CHECK_NOTHROW(load_with({.num_ops = 16, .magnitude = 30}));
  CHECK_NOTHROW(load_with({}, 1));
  CHECK_THROWS_WITH(load_with({.num_ops = 0}), ContainsSubstring("num_ops 0") && ContainsSubstring("[1, 16]"));
  CHECK_THROWS_WITH(load_with({.num_ops = 17}), ContainsSubstring("num_ops 17"));
  CHECK_THROWS_WITH(load_with({.magnitude = 31}), ContainsSubstring("magnitude 31") && ContainsSubstring("[0, 31)"));
  CHECK_THROWS_WITH(load_with({.magnitude = -1}), ContainsSubstring("magnitude -1"));
  CHECK_THROWS_WITH(load_with({.magnitude = 0, .num_magnitude_bins = 1}), ContainsSubstring("num_magnitude_bins 1"));
  CHECK_THROWS_WITH(load_with({}, 2), ContainsSubstring("got 2"));
}
