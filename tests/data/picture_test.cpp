#include "trireme/data/images/picture.hpp"

#include <limits>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

using Bytes = std::vector<std::uint8_t>;

Tensor<float> counting(const Shape& shape) {
  Tensor<float> images(shape);
  for (std::int64_t i = 0; i < images.numel(); ++i)
    images.data()[i] = static_cast<float>(i) / static_cast<float>(images.numel() - 1);
  return images;
}

}  // namespace

// Expected: the steps of torchvision's make_grid (nrow 2, padding 1) and save_image, done with PyTorch.
TEST_CASE("a grid lays images out row by row with padding around") {
  const Picture grid = image_grid(counting({5, 2, 3, 1}), {.columns = 2, .padding = 1});
  CHECK(grid.shape == ImageShape{.height = 10, .width = 9, .channels = 1});
  CHECK(grid.pixels == Bytes{0,   0,   0,   0, 0,   0,   0,   0, 0, 0, 0, 9, 18, 0, 53,  62,  70,  0, 0,   26,  35,  44, 0,
                             79,  88,  97,  0, 0,   0,   0,   0, 0, 0, 0, 0, 0,  0, 106, 114, 123, 0, 158, 167, 176, 0,  0,
                             132, 141, 149, 0, 185, 193, 202, 0, 0, 0, 0, 0, 0,  0, 0,   0,   0,   0, 211, 220, 229, 0,  0,
                             0,   0,   0,   0, 237, 246, 255, 0, 0, 0, 0, 0, 0,  0, 0,   0,   0,   0, 0,   0,   0});
}

TEST_CASE("a single image stays without padding, few images make a narrow grid") {
  const Tensor<float> images = counting({2, 3, 4, 3});
  const Picture one = image_grid(images.narrow(1, 1));
  CHECK(one.shape == ImageShape{.height = 3, .width = 4, .channels = 3});
  CHECK(one.pixels.front() == 129);  // 36 / 71 of 255
  CHECK(one.pixels.back() == 255);
  const Picture two = image_grid(images);
  CHECK(two.shape == ImageShape{.height = 7, .width = 14, .channels = 3});
  CHECK(std::equal(one.pixels.end() - 12, one.pixels.end(), two.pixels.begin() + (4 * 14 + 8) * 3));
  CHECK(two.pixels.front() == 0);
}

TEST_CASE("values of a grid are clamped to the range") {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto values = Tensor<float>::from({1, 1, 8, 1}, std::vector<float>{-1, -2, 0, 1, 1.5f, infinity, -infinity, nan});
  CHECK(image_grid(values, {.low = -1, .high = 1}).pixels == Bytes{0, 0, 128, 255, 255, 255, 0, 0});
  CHECK(image_grid(values).pixels == Bytes{0, 0, 0, 255, 255, 255, 0, 0});
}

TEST_CASE("grids that cannot be are refused") {
  CHECK_THROWS_WITH(image_grid(Tensor<float>({2, 3, 4})), ContainsSubstring("[2, 3, 4]"));
  CHECK_THROWS_AS(image_grid(Tensor<float>()), Error);
  CHECK_THROWS_WITH(image_grid(counting({2, 2, 2, 1}), {.columns = 0}), ContainsSubstring("0 columns"));
  CHECK_THROWS_WITH(image_grid(counting({2, 2, 2, 1}), {.low = 1, .high = 1}), ContainsSubstring("[1, 1]"));
  CHECK_THROWS_WITH(write_png("x.png", {.shape = {1, 2, 2}, .pixels = Bytes(4)}), ContainsSubstring("got 2"));
  CHECK_THROWS_WITH(write_png("x.png", {.shape = {1, 2, 1}, .pixels = Bytes(3)}), ContainsSubstring("3 bytes"));
}
