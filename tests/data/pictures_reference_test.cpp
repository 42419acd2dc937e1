#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.hpp"
#include "data/image_files.hpp"
#include "data/images/decode_picture.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/encoded_images.hpp"
#include "trireme/data/images/read_image_folder.hpp"
#include "trireme/data/loaders/image_loader.hpp"

using namespace trireme;
using namespace trireme::data;
using trireme::tests::Bytes;
using trireme::tests::TemporaryFolder;
using trireme::tests::write_bytes;

namespace {

namespace fs = std::filesystem;

Bytes bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Bytes picture(const std::string& name) {
  const fs::path path = tests::refs_folder_or_skip() / "pictures" / name;
  if (!fs::exists(path)) tests::skip_program(path.string() + " is not among these reference results");
  return bytes_of(path);
}

// A folder of one class with one file.
ImageFolder read_alone(const Bytes& bytes, const ImageFolderOptions& options) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "class");
  write_bytes(folder.path() / "class" / "picture", bytes);
  return read_image_folder(folder.path(), options);
}

// Of a file that must be refused as damaged.
std::string error_of(const Bytes& bytes) {
  try {
    read_alone(bytes, {.height = 8, .width = 8});
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::corrupt_file);
    CHECK_THAT(error.what(), ContainsSubstring("class/picture"));
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("pictures are read and resized as PIL does") {
  const auto check = [](const tests::Fixture& fixture) {
    std::vector<std::string> problems;
    const SafetensorsFile expected = fixture.tensors();
    for (const auto& [name, tensor] : fixture.index.at("tensors").items()) {
      const auto shape = tensor.at("shape").get<std::vector<std::int64_t>>();
      const auto read =
          read_alone(picture(tensor.at("picture")), {.height = shape[0], .width = shape[1], .channels = shape[2]});
      const auto pixels = expected.read_values<std::uint8_t>(name);
      const auto got = read.images.image(0);
      if (got.size() != pixels.size()) {
        problems.push_back(fmt::format("{}: {} bytes", name, got.size()));
        continue;
      }
      int most = 0;
      for (std::size_t i = 0; i < pixels.size(); ++i) most = std::max(most, std::abs(int{got[i]} - int{pixels[i]}));
      if (most > tensor.at("most_off").get<int>()) problems.push_back(fmt::format("{}: {} off", name, most));
    }
    return problems;
  };
  CHECK(tests::problems_of("pictures", check) == "");
}

TEST_CASE("damaged pictures are refused, wherever they end") {
  for (const char* name : {"colours.png", "interlaced.png", "deep.png", "baseline.jpg", "progressive.jpg", "grey.jpg"}) {
    const Bytes whole = picture(name);
    CAPTURE(name);
    CHECK(error_of(whole) == "no error");
    for (std::size_t length = 1; length + 1 < whole.size(); length += 1 + whole.size() / 97) {
      CAPTURE(length);
      CHECK(error_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))) != "no error");
    }
  }
  Bytes wrong = picture("colours.png");
  wrong[wrong.size() / 2] ^= 0x10;
  CHECK_THAT(error_of(wrong), ContainsSubstring("the PNG image is damaged"));
  CHECK_THAT(error_of(picture("cmyk.jpg")), ContainsSubstring("CMYK") && ContainsSubstring("RGB"));
  Bytes early = picture("baseline.jpg");
  early.resize(early.size() / 2);
  CHECK_THAT(error_of(early), ContainsSubstring("the JPEG image is damaged") && ContainsSubstring("fetch"));
}

TEST_CASE("pictures of absurd extents are refused before memory is asked for") {
  Bytes png = picture("colours.png");
  for (const std::size_t extent : {16, 20}) {  // with a header whose checksum is wrong: libpng looks at this first
    png[extent + 1] = 0x0f;
  }
  CHECK(error_of(png) != "no error");
  Bytes jpeg = picture("baseline.jpg");
  const Bytes frame = {0xff, 0xc0, 0, 17, 8};
  const auto at = std::search(jpeg.begin(), jpeg.end(), frame.begin(), frame.end());
  REQUIRE(at != jpeg.end());
  std::fill(at + 5, at + 9, std::uint8_t{0xfd});
  CHECK_THAT(error_of(jpeg), ContainsSubstring("65021 x 65021 pixels is too large") && ContainsSubstring("at most 178956970"));
}

TEST_CASE("a JPEG image that becomes small is decoded to fewer pixels, and looks the same") {
  for (const char* name : {"baseline.jpg", "progressive.jpg", "grey.jpg", "full_colours.jpg"}) {
    CAPTURE(name);
    const Bytes bytes = picture(name);
    const ImageShape stored = decode_picture(bytes, name).shape;
    const auto batch_of = [&](EncodedImageOptions options, int divisor, const Augmentation& augmentation) {
      options.height = stored.height / divisor;
      options.width = stored.width / divisor;
      options.classes = 1;
      const auto images = encoded_images(
          8, options, [&](std::int64_t) -> EncodedImage { return {.bytes = std::as_bytes(std::span(bytes)), .name = name}; },
          name);
      return ImageLoader(images, {.batch = {.batch_size = 8}, .augmentation = augmentation}).load(0).images;
    };
    // The mean of how far values are from those of an image that is decoded as a whole.
    const auto difference = [&](const EncodedImageOptions& options, int divisor, const Augmentation& augmentation) {
      const auto exact = batch_of({.reduced = false}, divisor, augmentation), other = batch_of(options, divisor, augmentation);
      double sum = 0;
      for (std::int64_t i = 0; i < exact.numel(); ++i) sum += std::abs(exact.data()[i] - other.data()[i]);
      return sum / static_cast<double>(exact.numel());
    };
    CHECK(difference({}, 1, {}) == 0);
    CHECK(difference({}, 3, {}) == 0);
    for (const int divisor : {4, 5, 8}) {
      CAPTURE(divisor);
      const double of_nearest = difference({.resizing = {.resampling = Resampling::nearest}, .reduced = false}, divisor, {});
      const double of_reduced = difference({}, divisor, {});
      CHECK(of_reduced > 0);
      CHECK(of_reduced < of_nearest / 2);
      CHECK(difference({}, divisor, {.random_resized_crop = RandomResizedCrop{.scale = {0.9, 1}}}) < of_nearest / 2);
    }
    const auto cut = encoded_images(
        1, {.height = 2, .width = 2, .classes = 1},
        [&](std::int64_t) -> EncodedImage {
          return {.bytes = std::as_bytes(std::span(bytes).first(bytes.size() / 2)), .name = name};
        },
        name);
    CHECK_THROWS_WITH(cut.image(0), ContainsSubstring("damaged") && ContainsSubstring(name));
  }
}

TEST_CASE("a box of a JPEG image is decoded as it is in the whole") {
  for (const char* name : {"baseline.jpg", "progressive.jpg", "grey.jpg", "full_colours.jpg"}) {
    const Bytes bytes = picture(name);
    for (const int reduction : {1, 2, 4, 8}) {
      const auto decoded = [&](const Box& box) {
        return decode_part(bytes, name, [&](const ImageShape&) -> JpegPart { return {.reduction = reduction, .box = box}; });
      };
      const Picture whole = decoded({});
      const auto [height, width, channels] = whole.shape;
      int other = 0;
      for (std::int64_t number = 0; number < 300; ++number) {
        const std::int64_t top = number * 7 % height, left = number * 11 % width;
        const Box box{
            .top = top, .left = left, .height = 1 + number * 5 % (height - top), .width = 1 + number * 13 % (width - left)};
        const Picture part = decoded(box);
        REQUIRE(part.shape == whole.shape);
        for (std::int64_t y = top; y < top + box.height; ++y) {
          const auto line = [&](const Picture& from) { return from.pixels.begin() + (y * width + left) * channels; };
          other += std::equal(line(part), line(part) + box.width * channels, line(whole)) ? 0 : 1;
        }
      }
      CAPTURE(name, reduction);
      CHECK(other == 0);
    }
  }
}

TEST_CASE("photographs are read") {
  const auto folder = tests::data_folder_or_skip() / "images";
  const TemporaryFolder classes;
  for (const char* name : {"china", "flower"}) {
    fs::create_directory(classes.path() / name);
    fs::copy(folder / (std::string(name) + ".jpg"), classes.path() / name / "photo.jpg");
  }
  const auto [images, names] = read_image_folder(classes.path(), {.height = 64, .width = 96});
  CHECK(names == std::vector<std::string>{"china", "flower"});
  CHECK(images.count() == 2);
  CHECK(images.shape() == ImageShape{.height = 64, .width = 96, .channels = 3});
  CHECK(images.label(1) == 1);
}
