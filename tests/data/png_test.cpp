#include <png.h>

#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/picture.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

Picture read(const std::filesystem::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&image, path.c_str()) != 0);
  const bool colour = (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  CHECK(image.format == (colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY));
  Picture picture{.shape = {.height = image.height, .width = image.width, .channels = colour ? 3 : 1}, .pixels = {}};
  picture.pixels.resize(static_cast<std::size_t>(picture.shape.numel()));
  REQUIRE(png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr) != 0);
  return picture;
}

}  // namespace

TEST_CASE("PNG files hold the picture") {
  const tests::TemporaryFolder folder;
  for (const ImageShape& shape : {ImageShape{7, 13, 1}, ImageShape{5, 300, 3}, ImageShape{1, 1, 1}}) {
    Picture picture{.shape = shape, .pixels = {}};
    for (std::int64_t i = 0; i < shape.numel(); ++i) picture.pixels.push_back(static_cast<std::uint8_t>(i * 7919 % 256));
    write_png(folder.path() / "picture.png", picture);  // over the one before
    const Picture got = read(folder.path() / "picture.png");
    CHECK(got.shape == shape);
    CHECK(got.pixels == picture.pixels);
  }
  CHECK_THROWS_WITH(write_png(folder.path() / "absent" / "a.png", {.shape = {1, 1, 1}, .pixels = {0}}),
                    ContainsSubstring("absent") && ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(
      write_png(folder.path() / "wide.png", {.shape = {1, 1'000'001, 1}, .pixels = std::vector<std::uint8_t>(1'000'001)}),
      ContainsSubstring("libpng"));
}
