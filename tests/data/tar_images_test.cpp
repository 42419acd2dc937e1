#include "trireme/data/loaders/tar_images.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/images/png.hpp"
#include "data/tar_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/data/images/normalized_images.hpp"
#include "trireme/data/images/read_image_folder.hpp"
#include "trireme/data/loaders/evaluation_batches.hpp"
#include "trireme/data/loaders/image_loader.hpp"
#include "trireme/data/loaders/prefetching.hpp"

using namespace trireme;
using namespace trireme::data;
using tests::TemporaryFolder;

namespace {

constexpr std::int64_t num_images = 23;

Picture picture_of(std::int64_t number) {
  Picture picture{.shape = {.height = 9 + number % 3, .width = 11, .channels = 3}, .pixels = {}};
  for (std::int64_t i = 0; i < picture.shape.numel(); ++i) {
    picture.pixels.push_back(static_cast<std::uint8_t>((i * i + 31 * number * i) % 253));
  }
  return picture;
}

std::string png_text(std::int64_t number) {
  const std::vector<std::uint8_t> bytes = png_of(picture_of(number), "picture");
  return {bytes.begin(), bytes.end()};
}

// Two archives of images and labels, and the same in a folder of classes.
class Images {
 public:
  Images() {
    std::vector<std::string> archives(2);
    for (std::int64_t number = 0; number < num_images; ++number) {
      const std::string name = fmt::format("{:02}", number), png = png_text(number);
      archives[number < 15 ? 0 : 1] += tests::tar_file(name + ".cls", fmt::format(" {}\n", number / 8)) +
                                       tests::tar_file(name + ".json", fmt::format(R"({{"label": {}}})", number / 8)) +
                                       tests::tar_file(name + ".png", png);
      const std::filesystem::path of_class = folder_.path() / "folder" / std::to_string(number / 8);
      std::filesystem::create_directories(of_class);
      tests::write_text(of_class / (name + ".png"), png);
    }
    tests::write_text(folder_.path() / "0.tar", archives[0] + tests::tar_mark);
    tests::write_text(folder_.path() / "1.tar", archives[1] + tests::tar_mark);
  }

  TarShards shards() const { return TarShards({folder_.path() / "0.tar", folder_.path() / "1.tar"}); }
  std::filesystem::path path() const { return folder_.path() / "folder"; }

 private:
  TemporaryFolder folder_;
};

bool same(const ImageBatch& left, const ImageBatch& right) {
  return std::ranges::equal(left.images.span(), right.images.span()) &&
         std::ranges::equal(left.labels.span(), right.labels.span());
}

std::string error_of(const std::string& archive, TarImageOptions options = {}) {
  const TemporaryFolder folder;
  tests::write_text(folder.path() / "x.tar", archive + tests::tar_mark);
  options.images = {.height = 4, .width = 4, .classes = 3};
  const ImageDataset images = tar_images(TarShards({folder.path() / "x.tar"}), options);
  try {
    ImageLoader(images, {.batch = {.batch_size = 1}}).load(0);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::corrupt_file);
    CHECK_THAT(error.what(), ContainsSubstring("x.tar") && ContainsSubstring("key"));
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("images of archives are those of a folder, in any batch") {
  const Images files;
  const Resizing resizing{.shorter = 8, .resampling = Resampling::bicubic};
  const auto folder = read_image_folder(files.path(), {.height = 7, .width = 8, .resizing = resizing}).images;
  for (const char* key : {"", "label"}) {
    const auto images = tar_images(files.shards(), {.images = {.height = 7, .width = 8, .classes = 3, .resizing = resizing},
                                                    .label_field = *key == '\0' ? "cls" : "json",
                                                    .label_key = key});
    REQUIRE(images.count() == num_images);
    CHECK(images.shape() == folder.shape());
    CHECK(images.part(20, 3).label(1) == 2);
    const Augmentation augmentation{.crop_padding = 1, .horizontal_flip = true, .hue = 0.1, .mixup_alpha = 0.4};
    const ImageLoaderOptions options{.batch = {.batch_size = 10}, .augmentation = augmentation};
    const ImageLoader expected(folder, options), got(images, options);
    for (std::int64_t step = 0; step < 5; ++step) CHECK(same(got.load(step), expected.load(step)));
    const auto normalization = normalization_of(folder);
    CHECK(normalization.mean == normalization_of(images).mean);
    const auto evaluated = evaluation_batches(NormalizedImages(folder, normalization), {.batch_size = 5});
    auto at = evaluated.begin();
    for (const ImageBatch& batch : evaluation_batches(NormalizedImages(images, normalization), {.batch_size = 5})) {
      CHECK(same(batch, *at));
      ++at;
    }
  }
}

TEST_CASE("a random crop is one of the image as it is stored") {
  const Images files;
  const auto images = tar_images(files.shards(), {.images = {.height = 3, .width = 4, .classes = 3}});
  const ImageLoaderOptions options{
      .batch = {.batch_size = num_images},
      .order = ImageOrder::sequential,
      .augmentation = {.random_resized_crop = RandomResizedCrop{.scale = {1, 1}, .ratio = {0.5, 2}}}};
  const ImageBatch batch = ImageLoader(images, options).load(0);
  int whole = 0;
  for (std::int64_t row = 0; row < num_images; ++row) {
    const Picture expected = picture_of(row);
    const float mean = std::accumulate(batch.images.data() + row * 36, batch.images.data() + (row + 1) * 36, 0.0F) / 36;
    const double of_all = std::accumulate(expected.pixels.begin(), expected.pixels.end(), 0.0) / 255 /
                          static_cast<double>(expected.pixels.size());
    whole += std::abs(mean - of_all) < 0.03 ? 1 : 0;
  }
  CHECK(whole > num_images / 2);
}

TEST_CASE("a bad image of an archive is skipped alike by all loaders, within its part") {
  set_log_sink([](Severity, std::string_view) {});
  const TemporaryFolder folder;
  std::string archive;
  for (std::int64_t number = 0; number < num_images; ++number) {
    const std::string name = fmt::format("{:02}", number), png = png_text(number);
    if (number != 5) archive += tests::tar_file(name + ".cls", number == 11 ? "9" : std::to_string(number / 8));
    archive += tests::tar_file(name + ".png", number == 6 ? png.substr(0, png.size() / 2) : png);
  }
  tests::write_text(folder.path() / "x.tar", archive + tests::tar_mark);
  const auto images_of = [&](const BadSampleOptions& bad) {
    return tar_images(TarShards({folder.path() / "x.tar"}),
                      {.images = {.height = 7, .width = 8, .classes = 3, .bad_samples = bad}});
  };
  const ImageDataset images = images_of({.policy = OnBadSample::skip});
  const ImageDataset stopping = images_of({});
  CHECK_THROWS_AS(stopping.image(5), BadSample);
  CHECK(stopping.label(6) == 0);
  CHECK(images.label(6) == 0);
  CHECK(std::ranges::equal(images.image(5), stopping.image(7)));
  CHECK(std::ranges::equal(images.part(0, 7).image(6), stopping.image(0)));  // not of what lies behind the part
  CHECK(images.num_bad_samples() == 2);
  std::vector<std::int32_t> labels[2];
  for (const int ranks : {1, 2}) {
    for (std::int64_t step = 0; step < 6; ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        const Prefetching loader(
            ImageLoader(images, {.batch = {.batch_size = 8, .index = rank, .count = ranks},
                                 .augmentation = {.random_resized_crop = RandomResizedCrop{}, .mixup_alpha = 0.4}}));
        for (const std::int32_t label : loader.load(step).labels.span()) labels[ranks - 1].push_back(label);
        const LoaderReport report = loader.report();
        CHECK(report.num_bad_samples == images.num_bad_samples());
        CHECK((report.decoding_seconds > 0 && report.augmenting_seconds > 0));
      }
    }
  }
  CHECK(labels[0] == labels[1]);
  CHECK(images.num_bad_samples() == 3);
  const ImageDataset few = images_of({.policy = OnBadSample::skip, .most = 1});
  CHECK_THROWS_WITH(few.image(5), ContainsSubstring("more than 1 bad samples; sample 6: ") && ContainsSubstring("x.tar: 06"));
  set_log_sink({});

  // Without labels all images are of one class.
  const auto unlabelled =
      tar_images(TarShards({folder.path() / "x.tar"}), {.images = {.height = 7, .width = 8, .classes = 1}, .label_field = ""});
  CHECK(unlabelled.label(11) == 0);
  CHECK(std::ranges::equal(unlabelled.image(5), unlabelled.image(5)));
}

TEST_CASE("any files are images that are decoded when they are read") {
  std::vector<std::string> files;
  for (std::int64_t number = 0; number < 4; ++number) files.push_back(png_text(number));
  int reads = 0;
  const auto images = encoded_images(
      4, {.height = 5, .width = 5, .channels = 1, .classes = 2},
      [&](std::int64_t index) -> EncodedImage {
        ++reads;
        return {.bytes = std::as_bytes(std::span(files[static_cast<std::size_t>(index)])),
                .label = static_cast<std::int32_t>(index),
                .name = fmt::format("file {}", index)};
      },
      "four files");
  CHECK(reads == 0);
  CHECK(images.image(1).size() == 25);
  CHECK(images.label(1) == 1);
  CHECK_THROWS_WITH(images.image(2), ContainsSubstring("file 2") && ContainsSubstring("label 2 is none of the classes 0 to 1"));
  CHECK(content_of(images.part(1, 2)) == "images 1 to 3 of 5 x 5 x 1 in four files");
  CHECK_THROWS_WITH(encoded_images(4, {.height = 5, .width = 5}, {}, ""), ContainsSubstring("set .classes"));
  CHECK_THROWS_WITH(encoded_images(4, {.classes = 2}, {}, ""), ContainsSubstring("set .height and .width"));
}

TEST_CASE("a batch gives up at the first image that can't be fetched") {
  int reads = 0;
  const auto images = encoded_images(
      16, {.height = 2, .width = 2, .classes = 2, .bad_samples = {.policy = OnBadSample::skip}},
      [&](std::int64_t) -> EncodedImage {
        ++reads;
        throw Error({.code = ErrorCode::io, .message = "the server does not answer"});
      },
      "nothing");
  CHECK_THROWS_WITH(ImageLoader(images, {.batch = {.batch_size = 16}}).load(0), ContainsSubstring("does not answer"));
  CHECK(reads == 1);
  const std::vector<std::int64_t> all{0, 1, 2, 3};
  CHECK_THROWS_WITH(NormalizedImages(images).collate(all, 0), ContainsSubstring("does not answer"));
  CHECK(reads == 2);
  CHECK(images.num_bad_samples() == 0);
}

TEST_CASE("a sample of an archive that is no image of a class is named") {
  const std::string image = tests::tar_file("key.png", png_text(0));
  CHECK_THAT(error_of(tests::tar_file("key.cls", "1")), ContainsSubstring("no image, .jpg, .jpeg, .png"));
  CHECK_THAT(error_of(image), ContainsSubstring("no file .cls"));
  CHECK_THAT(error_of(image + tests::tar_file("key.cls", "dog")), ContainsSubstring(".cls is \"dog\""));
  CHECK_THAT(error_of(image + tests::tar_file("key.cls", "3")), ContainsSubstring("label 3 is none of the classes 0 to 2"));
  CHECK_THAT(error_of(image + tests::tar_file("key.cls", "-1")), ContainsSubstring("label -1"));
  CHECK_THAT(error_of(tests::tar_file("key.png", "text") + tests::tar_file("key.cls", "1")), ContainsSubstring("is no image"));
  const TarImageOptions json{.label_field = "json", .label_key = "label"};
  CHECK_THAT(error_of(image + tests::tar_file("key.json", "[1"), json), ContainsSubstring(".json is no JSON object: byte"));
  CHECK_THAT(error_of(image + tests::tar_file("key.json", "{}"), json), ContainsSubstring("\"label\" of .json is not there"));
  CHECK_THAT(error_of(image + tests::tar_file("key.json", R"({"label":1.5})"), json), ContainsSubstring("is 1.5"));
  CHECK_THAT(error_of(image + tests::tar_file("key.json", R"({"label":4294967296})"), json),
             ContainsSubstring("is 4294967296"));
}
