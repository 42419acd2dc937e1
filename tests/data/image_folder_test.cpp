#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/image_files.hpp"
#include "data/images/decode_picture.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/data/images/picture.hpp"
#include "trireme/data/images/read_image_folder.hpp"

using namespace trireme;
using namespace trireme::data;
using trireme::tests::TemporaryFolder;
using trireme::tests::write_bytes;

namespace {

namespace fs = std::filesystem;

void write_grey(const fs::path& path, std::uint8_t value) {
  fs::create_directories(path.parent_path());
  write_png(path, {.shape = {.height = 2, .width = 3, .channels = 1}, .pixels = std::vector<std::uint8_t>(6, value)});
}

std::string error_of(const fs::path& path, const ImageFolderOptions& options) {
  try {
    read_image_folder(path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("each folder is a class, whatever the names of its files") {
  const TemporaryFolder folder;
  const fs::path& path = folder.path();
  write_grey(path / "b" / "2.jpg", 12);  // a PNG by its content
  write_grey(path / "b" / "1", 11);
  write_grey(path / "b" / "deep" / "er" / "0.png", 13);
  write_grey(path / "a" / "z.png", 1);
  write_grey(path / "a" / ".hidden.png", 99);
  write_grey(path / ".cache" / "x.png", 98);
  write_bytes(path / "README", tests::Bytes{'x'});
  const auto [images, names] = read_image_folder(path, {.height = 1, .width = 1, .channels = 1});
  CHECK(names == std::vector<std::string>{"a", "b"});
  CHECK(images.classes() == 2);
  REQUIRE(images.count() == 4);
  for (const auto& [index, value, label] : std::vector<std::array<int, 3>>{{0, 1, 0}, {1, 11, 1}, {2, 12, 1}, {3, 13, 1}}) {
    CHECK(images.image(index)[0] == value);
    CHECK(images.label(index) == label);
  }
  const auto colours = read_image_folder(path, {.height = 4, .width = 5}).images;
  CHECK(colours.shape() == ImageShape{.height = 4, .width = 5, .channels = 3});
  CHECK(std::ranges::all_of(colours.image(3), [](int value) { return value == 13; }));

  // Test images have the numbers of the training images' classes.
  const TemporaryFolder test;
  write_grey(test.path() / "b" / "1.png", 5);
  const auto found = read_image_folder(test.path(), {.height = 1, .width = 1, .classes = names});
  CHECK(found.images.label(0) == 1);
  CHECK(found.images.classes() == 2);
  CHECK_THAT(error_of(path, {.height = 1, .width = 1, .classes = {"b"}}),
             ContainsSubstring("not among the classes") && ContainsSubstring("classes are b") && ContainsSubstring("/a"));
  CHECK_THAT(error_of(path, {.height = 1, .width = 1, .classes = {"a", "b", "a"}}),
             ContainsSubstring("several classes have this name") && ContainsSubstring("/a"));
}

TEST_CASE("ranks read neighbouring images") {
  const TemporaryFolder folder;
  for (const int value : {10, 11, 12, 13, 14})
    write_grey(folder.path() / (value < 12 ? "a" : "b") / (std::to_string(value) + ".png"), static_cast<std::uint8_t>(value));
  for (const int count : {1, 2, 3, 7}) {
    std::vector<int> values, labels;
    for (int index = 0; index < count; ++index) {
      const auto part = read_image_folder(
          folder.path(), {.height = 1, .width = 1, .channels = 1, .classes = {"b", "a"}, .index = index, .count = count});
      CHECK(part.images.count() >= 5 / count);
      CHECK(part.images.count() <= (5 + count - 1) / count);
      for (std::int64_t image = 0; image < part.images.count(); ++image) {
        values.push_back(part.images.image(image)[0]);
        labels.push_back(part.images.label(image));
      }
    }
    CHECK(values == std::vector<int>{10, 11, 12, 13, 14});
    CHECK(labels == std::vector<int>{1, 1, 0, 0, 0});
  }
  CHECK_THAT(error_of(folder.path(), {.height = 1, .width = 1, .index = 2, .count = 2}), ContainsSubstring("rank 2 of 2"));
  CHECK(has_class_folders(folder.path()));
  CHECK(!has_class_folders(folder.path() / "a"));
  CHECK(!has_class_folders(folder.path() / "absent"));
  fs::create_directories(folder.path() / "a" / ".hidden");
  CHECK(!has_class_folders(folder.path() / "a"));
}

TEST_CASE("folders and files that hold no images are refused by name") {
  const TemporaryFolder folder;
  const fs::path& path = folder.path();
  const ImageFolderOptions small{.height = 2, .width = 2};
  CHECK_THAT(error_of(path, small), ContainsSubstring("no folders of classes") && ContainsSubstring(path.string()));
  CHECK_THAT(error_of(path / "absent", small), ContainsSubstring("absent") && ContainsSubstring("No such file"));
  fs::create_directory(path / "cat");
  CHECK_THAT(error_of(path, small), ContainsSubstring("the class has no images") && ContainsSubstring("/cat"));
  write_grey(path / "cat" / "1.png", 7);
  CHECK(error_of(path, small) == "no error");
  for (const auto& [content, what] : std::vector<std::pair<std::string, std::string>>{
           {"GIF89a....", "is a GIF image"}, {"", "is empty"}, {"text", "is no image"}, {"RIFF....WAVE", "is no image"}}) {
    write_bytes(path / "cat" / "2.png", tests::Bytes(content.begin(), content.end()));
    CHECK_THAT(error_of(path, small),
               ContainsSubstring(what) && ContainsSubstring("cat/2.png") && ContainsSubstring("PNG, JPEG or WebP"));
  }
  fs::remove(path / "cat" / "2.png");
  CHECK_THAT(error_of(path, {}), ContainsSubstring("set .height and .width"));
  CHECK_THAT(error_of(path, {.height = 1 << 20, .width = 1 << 20}), ContainsSubstring("1048576 x 1048576"));
  CHECK_THAT(error_of(path, {.height = 2, .width = 2, .channels = 4}), ContainsSubstring("1 channel or 3, got 4"));
}

TEST_CASE("links in a folder of images are followed, and refused in a circle") {
  const TemporaryFolder folder, elsewhere;
  write_grey(folder.path() / "a" / "1.png", 1);
  write_grey(elsewhere.path() / "b" / "2.png", 2);
  fs::create_directory_symlink(elsewhere.path() / "b", folder.path() / "b");
  fs::create_directory_symlink(elsewhere.path() / "b", folder.path() / "a" / "more");
  const ImageFolderOptions small{.height = 1, .width = 1, .channels = 1};
  CHECK(read_image_folder(folder.path(), small).images.count() == 3);
  for (const auto& [to, message] :
       std::vector<std::pair<std::string, std::string>>{{"loop", "leads to no file and no folder"},
                                                        {"absent", "leads to no file and no folder"},
                                                        {".", "leads back"},
                                                        {"..", "leads back"}}) {
    for (const fs::path& link : {folder.path() / "a" / "loop", elsewhere.path() / "b" / "loop"}) {
      CAPTURE(to, link.string());
      fs::create_symlink(to, link);
      CHECK_THAT(error_of(folder.path(), small), ContainsSubstring("/loop") && ContainsSubstring(message));
      fs::remove(link);
    }
  }
  fs::create_symlink("self", folder.path() / "self");
  CHECK_THAT(error_of(folder.path(), small), ContainsSubstring("/self"));
  CHECK(has_class_folders(folder.path()));
  CHECK(!has_class_folders(folder.path() / "self"));
  CHECK_THAT(error_of(folder.path() / "self", small), ContainsSubstring("/self"));
}

TEST_CASE("of several broken files the first is named") {
  const TemporaryFolder folder;
  for (int i = 0; i < 40; ++i) write_grey(folder.path() / "c" / (std::to_string(10 + i) + ".png"), 1);
  for (const char* name : {"17.png", "30.png", "49.png"}) write_bytes(folder.path() / "c" / name, tests::Bytes{'x'});
  for (int repetition = 0; repetition < 10; ++repetition) {
    CHECK_THAT(error_of(folder.path(), {.height = 2, .width = 2}), ContainsSubstring("17.png"));
  }
}

TEST_CASE("a picture keeps its mean when it is resized") {
  Picture picture{.shape = {.height = 64, .width = 64, .channels = 1}, .pixels = {}};
  for (int i = 0; i < 64 * 64; ++i) picture.pixels.push_back(i % 2 == 0 ? 0 : 200);
  const Picture small = resized(picture, 8, 8);
  CHECK(std::ranges::all_of(small.pixels, [](int value) { return value >= 95 && value <= 105; }));
  CHECK(resized(picture, 64, 64).pixels == picture.pixels);
  CHECK(resized({.shape = {1, 1, 1}, .pixels = {77}}, 3, 5).pixels == std::vector<std::uint8_t>(15, 77));
}

TEST_CASE("a picture is resized as by PIL's BICUBIC") {
  Picture picture{.shape = {.height = 5, .width = 6, .channels = 1}, .pixels = {}};
  for (int i = 0; i < 30; ++i) picture.pixels.push_back(static_cast<std::uint8_t>((i * i * 37 + 11 * i) % 256));
  const auto bicubic = [&](std::int64_t height, std::int64_t width) {
    return resized(picture, height, width, Resampling::bicubic).pixels;
  };
  using Pixels = std::vector<std::uint8_t>;
  CHECK(bicubic(3, 4) == Pixels{50, 122, 108, 212, 155, 204, 117, 173, 128, 186, 161, 166});
  CHECK(bicubic(7, 4) == Pixels{5,  129, 120, 178, 64,  115, 108, 226, 124, 147, 94, 229, 144, 235,
                                97, 149, 191, 214, 169, 151, 146, 185, 171, 167, 71, 170, 135, 179});
  CHECK(bicubic(3, 8) == Pixels{47, 51,  103, 158, 74,  124, 197, 233, 107, 187, 234, 190,
                                67, 153, 194, 145, 104, 145, 186, 192, 154, 164, 171, 162});
  CHECK(bicubic(2, 9) == Pixels{68, 92, 133, 179, 114, 67, 165, 200, 204, 107, 156, 209, 206, 157, 126, 180, 170, 147});
}

// Expected: Pillow 13.0.0.
TEST_CASE("columns are resized first where PIL does so") {
  Picture picture{.shape = {.height = 9, .width = 5, .channels = 1}, .pixels = {}};
  for (int i = 0; i < 45; ++i) picture.pixels.push_back(static_cast<std::uint8_t>((29 * i * i + 17 * i) % 251));
  using Pixels = std::vector<std::uint8_t>;
  CHECK(resized(picture, 4, 4).pixels == Pixels{56, 105, 123, 145, 82, 136, 136, 167, 139, 106, 91, 97, 143, 135, 122, 133});
  CHECK(resized(picture, 6, 4).pixels ==
        Pixels{36, 92, 118, 114, 81, 134, 126, 182, 78, 135, 144, 167, 170, 114, 96, 74, 92, 85, 84, 131, 175, 170, 142, 135});
  CHECK(resized(picture, 7, 4).pixels == Pixels{30,  91, 112, 93,  83, 122, 131, 194, 60, 153, 136, 196, 132, 112,
                                                133, 96, 147, 109, 69, 95,  104, 84,  98, 128, 173, 182, 143, 142});
  CHECK(resized(picture, 6, 4, Resampling::bicubic).pixels ==
        Pixels{29, 89, 121, 112, 80, 140, 122, 197, 67, 138, 148, 172, 188, 112, 92, 63, 81, 78, 78, 137, 181, 177, 143, 133});
  CHECK(resized(picture, 4, 3, Resampling::nearest).pixels == Pixels{57, 34, 243, 3, 136, 250, 227, 14, 33, 227, 170, 94});
  CHECK(resized(picture, 5, 7, Resampling::nearest).pixels == Pixels{0,   46,  46,  150, 61,  61,  30,  58,  182, 182, 113, 102,
                                                                     102, 149, 143, 94,  94,  103, 170, 170, 44,  4,   33,  33,
                                                                     120, 14,  14,  217, 143, 250, 250, 164, 136, 136, 166});
}

TEST_CASE("of resized images the centre is taken") {
  Picture picture{.shape = {.height = 3, .width = 6, .channels = 1}, .pixels = {}};
  for (int i = 0; i < 18; ++i) picture.pixels.push_back(static_cast<std::uint8_t>(i));
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "class");
  write_png(folder.path() / "class" / "1.png", picture);
  const auto read = [&](std::int64_t height, std::int64_t width, const Resizing& resizing) {
    const ImageFolderOptions options{.height = height, .width = width, .channels = 1, .resizing = resizing};
    const auto images = read_image_folder(folder.path(), options).images;
    CHECK(images.shape() == ImageShape{.height = height, .width = width, .channels = 1});
    const ImagePixels image = images.image(0);
    return std::vector<std::uint8_t>(image.begin(), image.end());
  };
  using Pixels = std::vector<std::uint8_t>;
  CHECK(read(1, 2, {.height = 3, .width = 6}) == Pixels{8, 9});
  CHECK(read(2, 3, {.height = 3, .width = 6}) == Pixels{1, 2, 3, 7, 8, 9});
  CHECK(read(3, 2, {.shorter = 3}) == Pixels{2, 3, 8, 9, 14, 15});
  const Picture larger = resized(picture, 5, 10, Resampling::bicubic);  // its proportions stay
  CHECK(read(5, 4, {.shorter = 5, .resampling = Resampling::bicubic}) == centre_of(larger, 5, 4).pixels);
  CHECK_THAT(error_of(folder.path(), {.height = 4, .width = 4, .resizing = {.shorter = 3}}),
             ContainsSubstring("too small for a centre crop"));
  CHECK_THAT(error_of(folder.path(), {.height = 4, .width = 4, .resizing = {.height = 4, .width = 3}}),
             ContainsSubstring("4 x 3") && ContainsSubstring("too small for a centre crop"));
  CHECK_THAT(error_of(folder.path(), {.height = 4, .width = 4, .resizing = {.shorter = 20'000}}),
             ContainsSubstring("1.png") && ContainsSubstring("20000 x 40000"));
}

TEST_CASE("a damaged file of a folder is skipped alike for any share of it") {
  set_log_sink([](Severity, std::string_view) {});
  const TemporaryFolder folder;
  for (std::uint8_t value = 0; value < 6; ++value) {
    write_grey(folder.path() / (value < 3 ? "a" : "b") / fmt::format("{}.png", value), value);
  }
  write_bytes(folder.path() / "a" / "2.png", tests::Bytes{'n', 'o'});
  write_bytes(folder.path() / "b" / "5.png", tests::Bytes{});
  ImageFolderOptions options{.height = 2, .width = 2, .channels = 1};
  CHECK_THAT(error_of(folder.path(), options), ContainsSubstring("a/2.png"));
  options.bad_samples = {.policy = OnBadSample::skip, .most = 2};
  const std::array<std::array<int, 2>, 6> expected{{{0, 0}, {1, 0}, {3, 1}, {3, 1}, {4, 1}, {0, 0}}};  // values and labels
  for (const int ranks : {1, 2, 3}) {
    std::size_t at = 0;
    options.count = ranks;
    for (options.index = 0; options.index < ranks; ++options.index) {
      const ImageDataset images = read_image_folder(folder.path(), options).images;
      for (std::int64_t image = 0; image < images.count(); ++image, ++at) {
        CHECK(images.image(image)[0] == expected[at][0]);
        CHECK(images.label(image) == expected[at][1]);
      }
      if (ranks == 1) CHECK(images.num_bad_samples() == 2);
    }
    CHECK(at == 6);
  }
  options.index = 0;
  options.count = 1;
  options.bad_samples.most = 1;
  CHECK_THAT(error_of(folder.path(), options), ContainsSubstring("more than 1 bad samples"));
  set_log_sink({});
}
