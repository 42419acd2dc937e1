#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "data/image_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/masked_images.hpp"
#include "trireme/data/images/picture.hpp"
#include "trireme/data/images/read_image.hpp"
#include "trireme/data/images/read_image_pairs.hpp"
#include "trireme/data/loaders/loader.hpp"

using namespace trireme;
using namespace trireme::data;
using trireme::tests::TemporaryFolder;

namespace {

namespace fs = std::filesystem;
using Pixels = std::vector<std::uint8_t>;

void write_hexadecimal(const fs::path& path, std::string_view digits) {
  tests::Bytes bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(std::string(digits.substr(at, 2)), nullptr, 16)));
  }
  fs::create_directories(path.parent_path());
  tests::write_bytes(path, bytes);
}

void write_grey(const fs::path& path, std::int64_t height, std::int64_t width, const Pixels& pixels) {
  fs::create_directories(path.parent_path());
  write_png(path, {.shape = {.height = height, .width = width, .channels = 1}, .pixels = pixels});
}

// As Pillow writes them. 6 x 4 pixels of 4 bits with a palette of 16 colours.
constexpr std::string_view palette_png =
    "89504e470d0a1a0a0000000d49484452000000060000000404030000005f2a537000000030504c544500ff000ff5251eeb4a2de16f3cd7944bcdb95ac3"
    "de69b90378af2887a54d969b72a59197b487bcc37de1d27306e1692b4f9b1d420000001849444154789c6360ce14618860ce64f16298c5b2349a010016"
    "730331125dab950000000049454e44ae426082";
const Pixels places = {0, 3, 6, 9, 1, 4, 5, 8, 0, 3, 6, 9, 10, 2, 5, 8, 0, 3, 4, 7, 10, 2, 5, 8};
// The same palette, whose colour 3 is transparent: 2 x 2 pixels 0, 3, 2, 1.
constexpr std::string_view transparent_png =
    "89504e470d0a1a0a0000000d49484452000000020000000204030000008098101700000030504c544500ff000ff5251eeb4a2de16f3cd7944bcdb95ac3"
    "de69b90378af2887a54d969b72a59197b487bcc37de1d27306e1692b4f9b1d420000000474524e53ffffff00402aa9f40000000c49444154789c636066"
    "920300002f00243a1115ca0000000049454e44ae426082";
// 9 x 2 pixels of 1 bit, every third of which is set.
constexpr std::string_view bits_png =
    "89504e470d0a1a0a0000000d4948445200000009000000020100000000a22dcb7e0000000e49444154789c6398c4c0c4c0000002e6009598b042ea0000"
    "000049454e44ae426082";
// 2 x 1 pixels of 16 bits: 300 and 7.
constexpr std::string_view deep_png =
    "89504e470d0a1a0a0000000d494844520000000200000001100000000081d9fc150000000d49444154789c6360d46160070000940035bcb4c285000000"
    "0049454e44ae426082";
// 3 x 1 pixels of red, green and blue that are all the same: 0, 7, 255.
constexpr std::string_view grey_of_three_png =
    "89504e470d0a1a0a0000000d4948445200000003000000010802000000948283e30000001249444154789c63606060606767ffffff3f00066d03135ba3"
    "e1b10000000049454e44ae426082";

std::string error_of(const fs::path& images, const fs::path& masks, const ImagePairOptions& options) {
  try {
    read_image_pairs(images, masks, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the numbers of a palette image are read as they are") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "mask.png";
  write_hexadecimal(path, palette_png);
  const Picture numbers = read_image(path, {.numbers = true});
  CHECK(numbers.shape == ImageShape{.height = 4, .width = 6, .channels = 1});
  CHECK(numbers.pixels == places);
  CHECK(read_image(path).shape.channels == 3);
  CHECK(read_image(path, {.channels = 1}).pixels.front() == 150);  // the grey of its first colour, (0, 255, 0)
  const Picture small = read_image(path, {.height = 5, .width = 3, .resampling = Resampling::nearest, .numbers = true});
  CHECK(small.pixels == Pixels{3, 9, 4, 8, 3, 9, 2, 8, 3, 2, 8, 3, 7, 2, 8});  // Pillow's
  write_hexadecimal(path, transparent_png);
  CHECK(read_image(path, {.numbers = true}).pixels == Pixels{0, 3, 2, 1});
}

TEST_CASE("the numbers of grey images are read as they are stored") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "mask.png";
  write_hexadecimal(path, bits_png);
  CHECK(read_image(path, {.numbers = true}).pixels == Pixels{1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0});
  CHECK(read_image(path).pixels[0] == 255);
  write_grey(path, 1, 3, {0, 21, 255});
  CHECK(read_image(path, {.numbers = true}).pixels == Pixels{0, 21, 255});
  CHECK(read_image(path, {.height = 1, .width = 6, .resampling = Resampling::nearest}).pixels ==
        Pixels{0, 0, 21, 21, 255, 255});
  write_hexadecimal(path, grey_of_three_png);
  CHECK(read_image(path, {.numbers = true}).pixels == Pixels{0, 7, 255});
  CHECK(read_image(path, {.height = 2}).shape == ImageShape{.height = 2, .width = 3, .channels = 3});
}

TEST_CASE("images that hold no numbers are refused by name") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "mask.png";
  write_png(path, {.shape = {.height = 1, .width = 1, .channels = 3}, .pixels = {1, 2, 3}});
  CHECK_THROWS_WITH(read_image(path, {.numbers = true}),
                    ContainsSubstring("mask.png") && ContainsSubstring("colours, not numbers: a pixel is (1, 2, 3)"));
  write_hexadecimal(path, deep_png);
  CHECK_THROWS_WITH(read_image(path, {.numbers = true}), ContainsSubstring("mask.png") && ContainsSubstring("16 bits"));
  CHECK_THROWS_WITH(read_image(path, {.height = 4, .width = 4, .numbers = true}), ContainsSubstring("Resampling::nearest"));
  CHECK_THROWS_WITH(read_image(path, {.channels = 3, .numbers = true}), ContainsSubstring("one channel"));
  CHECK_THROWS_WITH(read_image(path, {.channels = 2}), ContainsSubstring("got 2"));
  CHECK_THROWS_WITH(read_image(path, {.height = -1}), ContainsSubstring("can't be resized"));
  CHECK_THROWS_WITH(read_image(path, {.height = 1 << 20, .width = 1 << 20}), ContainsSubstring("can't be resized"));
  CHECK_THROWS_WITH(read_image(folder.path() / "absent.png"), ContainsSubstring("No such file"));
}

TEST_CASE("images and masks are paired by their names") {
  const TemporaryFolder folder;
  const fs::path images = folder.path() / "images", masks = folder.path() / "masks";
  write_grey(images / "b.png", 1, 2, {10, 11});
  write_grey(images / "deep" / "a.jpeg", 1, 2, {20, 21});
  write_grey(images / ".b.png", 1, 1, {99});
  write_grey(masks / "b.png", 1, 2, {1, 255});
  write_grey(masks / "deep" / "a.png", 1, 2, {2, 3});
  const ImagePairOptions options{.height = 1, .width = 2, .channels = 1};
  const ImagePairs pairs = read_image_pairs(images, masks, options);
  CHECK(pairs.names == std::vector<std::string>{"b", "deep/a"});
  CHECK(pairs.images.image(1)[1] == 21);
  CHECK(pairs.masks.image(1)[0] == 2);
  CHECK(read_image_pairs(images, masks, {.height = 1, .width = 4}).masks.image(0)[1] == 1);
  CHECK(content_of(pairs) != content_of({.images = pairs.images, .masks = pairs.images, .names = pairs.names}));
  CHECK(content_of(MaskedImages(pairs)) == content_of(pairs));

  const auto second = read_image_pairs(images, masks, {.height = 1, .width = 2, .channels = 1, .index = 1, .count = 2});
  CHECK(second.names == std::vector<std::string>{"deep/a"});
  CHECK(second.images.image(0)[0] == 20);

  const Loader loader(MaskedImages(pairs, {.normalization = {.mean = {0}, .std = {2}}, .ignored = 255}),
                      LoaderOptions{.batch = {.batch_size = 2}, .order = Order::sequential});
  const MaskedBatch batch = on_device<Cpu>(loader.load(0));
  CHECK(batch.images.shape() == Shape{2, 1, 2, 1});
  CHECK(batch.images.at(1, 0, 1, 0) == Approx(21.0 / 255 / 2));
  CHECK(batch.labels.shape() == Shape{2, 1, 2});
  CHECK(batch.labels.to_vector() == std::vector<std::int32_t>{1, no_label, 2, 3});
  CHECK_THROWS_WITH(MaskedImages({.images = pairs.images, .masks = second.masks, .names = {}}),
                    ContainsSubstring("the numbers of images, 2, and masks, 1, differ"));
}

TEST_CASE("images without masks are named, and masks without images") {
  const TemporaryFolder folder;
  const fs::path images = folder.path() / "images", masks = folder.path() / "masks";
  for (const char* name : {"a.png", "b.png", "d.png"}) write_grey(images / name, 1, 1, {1});
  for (const char* name : {"b.png", "c.png", "d_mask.png"}) write_grey(masks / name, 1, 1, {1});
  const ImagePairOptions options{.height = 1, .width = 1};
  CHECK_THAT(error_of(images, masks, options), ContainsSubstring("2 of 3 images have no mask: a, d") &&
                                                   ContainsSubstring("2 of 3 masks have no image: c, d_mask") &&
                                                   ContainsSubstring("/masks") && ContainsSubstring(".mask_suffix"));
  for (const char* name : {"a.png", "c.png"}) fs::remove((name[0] == 'a' ? images : masks) / name);
  CHECK(read_image_pairs(images, masks, {.height = 1, .width = 1, .mask_suffix = "_mask"}).names ==
        std::vector<std::string>{"b", "d"});
  for (int i = 0; i < 12; ++i) write_grey(images / fmt::format("more{:02}.png", i), 1, 1, {1});
  CHECK_THAT(error_of(images, masks, {.height = 1, .width = 1, .mask_suffix = "_mask"}),
             ContainsSubstring("12 of 14 images") && ContainsSubstring("more09, ...") && !ContainsSubstring("more10"));
  write_grey(images / "b.jpg", 1, 1, {1});
  CHECK_THAT(error_of(images, masks, options), ContainsSubstring("b.jpg and b.png have the same name"));
  CHECK_THAT(error_of(folder.path() / "absent", masks, options), ContainsSubstring("absent"));
  CHECK_THAT(error_of(images, masks, {}), ContainsSubstring("set .height and .width"));
}

TEST_CASE("images and masks may lie in one folder, where a suffix tells them apart") {
  const TemporaryFolder folder;
  for (const char* name : {"a.jpg", "a_mask.png", "b.jpg", "b_mask.png"}) {
    write_grey(folder.path() / name, 1, 1, {static_cast<std::uint8_t>(name[0])});
  }
  const ImagePairOptions options{.height = 1, .width = 1, .mask_suffix = "_mask"};
  CHECK(read_image_pairs(folder.path(), folder.path(), options).names == std::vector<std::string>{"a", "b"});
  CHECK_THAT(error_of(folder.path(), folder.path() / ".", {.height = 1, .width = 1}),
             ContainsSubstring("are in the same folder"));
  fs::remove(folder.path() / "b.jpg");
  CHECK_THAT(error_of(folder.path(), folder.path(), options), ContainsSubstring("1 of 2 masks have no image: b"));
}

TEST_CASE("a mask of other extents than its image is refused") {
  const TemporaryFolder folder;
  const fs::path images = folder.path() / "images", masks = folder.path() / "masks";
  write_grey(images / "a.png", 1, 2, {1, 2});
  write_grey(masks / "a.png", 2, 1, {1, 2});
  CHECK_THAT(error_of(images, masks, {.height = 4, .width = 4}),
             ContainsSubstring("masks/a.png") && ContainsSubstring("wanted 1 x 2") && ContainsSubstring("had 2 x 1"));
}
