#include <algorithm>
#include <set>
#include <string>

#include "catch.hpp"
#include "data/image_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/images/cifar10.hpp"
#include "trireme/data/images/mnist.hpp"
#include "trireme/data/loaders/image_loader.hpp"

using namespace trireme;
using namespace trireme::data;
using trireme::tests::Bytes;
using trireme::tests::idx_file;
using trireme::tests::TemporaryFolder;
using trireme::tests::write_bytes;

namespace {

Bytes counting(std::size_t count) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 37 % 251));
  return bytes;
}

// Image i is of class i % 10.
ImageDataset images_of(std::int64_t count, const ImageShape& shape) {
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(static_cast<std::int32_t>(i % 10));
  return {shape, counting(static_cast<std::size_t>(count * shape.numel())), labels, 10};
}

// One image of one pixel for each number below count <= 256: its value is its number.
ImageDataset numbered(std::int64_t count) {
  Bytes pixels;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    pixels.push_back(static_cast<std::uint8_t>(i));
    labels.push_back(static_cast<std::int32_t>(i));
  }
  return {{.height = 1, .width = 1, .channels = 1}, pixels, labels, count};
}

bool equal(std::span<const std::uint8_t> bytes, const Bytes& expected) { return std::ranges::equal(bytes, expected); }

}  // namespace

TEST_CASE("parts of a data set share its images") {
  const ImageDataset dataset = images_of(5, {.height = 2, .width = 3, .channels = 1});
  const ImageDataset part = dataset.part(1, 3).part(1, 2);
  CHECK(part.count() == 2);
  CHECK(part.label(1) == 3);
  CHECK(part.image(0).data() == dataset.image(2).data());
  CHECK_THROWS_WITH(part.image(2), ContainsSubstring("image 2 does not exist among 2"));
  CHECK_THROWS_AS(part.label(-1), Error);
  CHECK_THROWS_AS(dataset.part(3, 3), Error);
}

TEST_CASE("a data set of wrong sizes or labels is refused") {
  const ImageShape shape{.height = 1, .width = 2, .channels = 1};
  CHECK_THROWS_WITH(ImageDataset(shape, Bytes(3), {0, 1}, 2), ContainsSubstring("3 bytes"));
  CHECK_THROWS_WITH(ImageDataset(shape, Bytes(4), {0, 2}, 2), ContainsSubstring("label 2 of image 1"));
  CHECK_THROWS_WITH(ImageDataset(shape, Bytes(4), {0, -1}, 2), ContainsSubstring("label -1"));
  CHECK_THROWS_AS(ImageDataset({.height = 0, .width = 2, .channels = 1}, {}, {}, 2), Error);
}

TEST_CASE("the normalization of images is that of their channels") {
  const ImageDataset dataset({.height = 1, .width = 2, .channels = 2}, {0, 255, 255, 51, 0, 51, 255, 51}, {0, 0}, 1);
  const Normalization normalization = normalization_of(dataset);
  CHECK(normalization.mean[0] == Approx(0.5));
  CHECK(normalization.std[0] == Approx(0.5));
  CHECK(normalization.mean[1] == Approx(0.4));  // of 1, 0.2, 0.2, 0.2
  CHECK(normalization.std[1] == Approx(std::sqrt(0.12)));
  CHECK_THROWS_WITH(normalization_of(dataset.part(0, 0)), ContainsSubstring("without images"));
  for (int value = 0; value < 256; ++value) {
    const ImageDataset constant({7, 33, 1}, std::vector<std::uint8_t>(7 * 33, static_cast<std::uint8_t>(value)), {0}, 1);
    CHECK_THROWS_WITH(normalization_of(constant), ContainsSubstring("same value"));
  }
}

TEST_CASE("MNIST files give images and labels") {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "images", idx_file({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}));
  write_bytes(folder.path() / "labels", idx_file({2}, {9, 0}));
  const ImageDataset dataset = read_mnist(folder.path() / "images", folder.path() / "labels");
  CHECK(dataset.count() == 2);
  CHECK(dataset.classes() == 10);
  CHECK(dataset.shape() == ImageShape{.height = 3, .width = 2, .channels = 1});
  CHECK(equal(dataset.image(1), {6, 7, 8, 9, 10, 255}));
  CHECK(dataset.label(0) == 9);
}

TEST_CASE("MNIST files that are damaged or do not belong together are refused") {
  const TemporaryFolder folder;
  const auto images = folder.path() / "images";
  const auto labels = folder.path() / "labels";
  const auto error_with = [&](const Bytes& image_bytes, const Bytes& label_bytes) {
    write_bytes(images, image_bytes);
    write_bytes(labels, label_bytes);
    try {
      read_mnist(images, labels);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::corrupt_file);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const Bytes good_images = idx_file({2, 1, 2}, {1, 2, 3, 4});
  const Bytes good_labels = idx_file({2}, {0, 1});
  REQUIRE(error_with(good_images, good_labels) == "no error");

  const Bytes early(good_images.begin(), good_images.end() - 1);
  CHECK_THAT(error_with(early, good_labels), ContainsSubstring("ends early") && ContainsSubstring(images.string()) &&
                                                 ContainsSubstring("2 elements of 2 bytes") &&
                                                 ContainsSubstring("had 3 bytes"));
  Bytes late = good_images;
  late.push_back(0);
  CHECK_THAT(error_with(late, good_labels), ContainsSubstring("goes on after"));
  CHECK_THAT(error_with(idx_file({2, 0, 2}, {}), good_labels), ContainsSubstring("2 elements of 0 bytes"));
  CHECK_THAT(error_with({0, 0, 8, 3, 0}, good_labels), ContainsSubstring("header") && ContainsSubstring("16 bytes"));
  CHECK_THAT(error_with({}, good_labels), ContainsSubstring("had 0 bytes"));
  CHECK_THAT(error_with(good_labels, good_images), ContainsSubstring("header"));
  CHECK_THAT(error_with(idx_file({2}, Bytes(8)), good_labels),
             ContainsSubstring("not an idx3 file") && ContainsSubstring("0x00000803") && ContainsSubstring("0x00000801"));
  CHECK_THAT(error_with(good_images, idx_file({3}, {0, 1, 2})),
             ContainsSubstring(labels.string()) && ContainsSubstring("2 labels") && ContainsSubstring("had 3"));
  CHECK_THAT(error_with(good_images, idx_file({2}, {0, 10})), ContainsSubstring("label 1") && ContainsSubstring("had 10"));

  // Extents whose product does not fit into 64 bits.
  Bytes huge = good_images;
  std::fill(huge.begin() + 4, huge.begin() + 16, std::uint8_t{255});
  CHECK_THAT(error_with(huge, good_labels), ContainsSubstring("ends early"));
  CHECK_THROWS_WITH(read_mnist(folder.path() / "absent", labels),
                    ContainsSubstring("absent") && ContainsSubstring("No such file"));
}

TEST_CASE("CIFAR-10 records become images with the channels last") {
  const TemporaryFolder folder;
  Bytes record = counting(3073);
  record[0] = 9;
  const Bytes other(3073, 4);
  write_bytes(folder.path() / "b.bin", record);
  write_bytes(folder.path() / "a.bin", other);
  write_bytes(folder.path() / "readme.html", {});
  const ImageDataset dataset = read_cifar10({folder.path()});
  REQUIRE(dataset.count() == 2);
  CHECK(dataset.label(0) == 4);
  CHECK(dataset.label(1) == 9);
  const auto image = dataset.image(1);
  for (const std::size_t y : {0, 7, 31}) {
    for (const std::size_t x : {0, 30, 31}) {
      for (const std::size_t channel : {0, 1, 2}) {
        CHECK(image[(y * 32 + x) * 3 + channel] == record[1 + channel * 1024 + y * 32 + x]);
      }
    }
  }
  CHECK(read_cifar10({folder.path() / "b.bin", folder.path() / "a.bin"}).label(0) == 9);
}

TEST_CASE("the files of a CIFAR-10 folder are read in the order of their names") {
  const TemporaryFolder folder;
  for (const std::uint8_t label : Bytes{3, 7, 1, 9, 0, 5, 2, 8, 6, 4}) {
    write_bytes(folder.path() / ("batch_" + std::to_string(label) + ".bin"), Bytes(3073, label));
  }
  const ImageDataset dataset = read_cifar10({folder.path()});
  REQUIRE(dataset.count() == 10);
  for (std::int64_t i = 0; i < 10; ++i) CHECK(dataset.label(i) == i);
}

TEST_CASE("CIFAR-10 files that are damaged are refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_cifar10({folder.path()}), ContainsSubstring("no CIFAR-10 images") && ContainsSubstring("*.bin"));
  CHECK_THROWS_WITH(read_cifar10({folder.path() / "absent"}), ContainsSubstring("No such file"));
  CHECK_THROWS_AS(read_cifar10({}), Error);
  const auto path = folder.path() / "a.bin";
  write_bytes(path, Bytes(2 * 3073 - 1));
  CHECK_THROWS_WITH(read_cifar10({path}),
                    ContainsSubstring(path.string()) && ContainsSubstring("3073") && ContainsSubstring("6145"));
  write_bytes(path, {});
  CHECK_THROWS_WITH(read_cifar10({path}), ContainsSubstring("empty"));
  Bytes records(2 * 3073);
  records[3073] = 10;
  write_bytes(path, records);
  CHECK_THROWS_WITH(read_cifar10({path}), ContainsSubstring("record 1") && ContainsSubstring("had 10"));
}

TEST_CASE("a loader gives the pixels as they are, from 0 to 1") {
  const ImageDataset dataset = images_of(6, {.height = 4, .width = 5, .channels = 3});
  const ImageBatch batch = ImageLoader(dataset, {.batch = {.batch_size = 3}, .order = ImageOrder::sequential}).load(1);
  REQUIRE(batch.images.shape() == Shape{3, 4, 5, 3});
  CHECK(batch.first_sample == 3);
  CHECK(batch.valid == 3);
  for (std::int64_t row = 0; row < 3; ++row) {
    CHECK(batch.labels.data()[row] == dataset.label(3 + row));
    const auto bytes = dataset.image(3 + row);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      CHECK(batch.images.data()[static_cast<std::size_t>(row) * bytes.size() + i] == static_cast<float>(bytes[i]) / 255);
    }
  }
}

TEST_CASE("a loader takes the mean away and divides by the standard deviation, channel by channel") {
  const ImageDataset dataset({.height = 1, .width = 1, .channels = 3}, {0, 51, 255}, {0}, 1);
  const Normalization normalization{.mean = {0.5f, 0.1f, 0}, .std = {0.5f, 0.2f, 4}};
  const ImageBatch batch =
      ImageLoader(dataset, {.batch = {.batch_size = 1}, .normalization = normalization, .augmentation = {.crop_padding = 0}})
          .load(0);
  CHECK(batch.images.data()[0] == Approx(-1));
  CHECK(batch.images.data()[1] == Approx(0.5));
  CHECK(batch.images.data()[2] == Approx(0.25));
  CHECK_THROWS_WITH(ImageLoader(dataset, {.batch = {.batch_size = 1}, .normalization = {.mean = {0}, .std = {1}}}),
                    ContainsSubstring("1 means") && ContainsSubstring("3 channels"));
  CHECK_THROWS_WITH(ImageLoader(dataset, {.batch = {.batch_size = 1}, .normalization = {.mean = {0, 0, 0}, .std = {1, 0, 1}}}),
                    ContainsSubstring("not above 0"));
}

TEST_CASE("shuffled images come once an epoch, in a new order each, also where batches cross its end") {
  const ImageLoader loader(numbered(10), {.batch = {.batch_size = 4, .seed = 3}});
  CHECK(loader.steps_per_epoch() == 3);
  std::vector<std::int32_t> labels;
  for (std::int64_t step = 0; step < 5; ++step) {
    const ImageBatch batch = loader.load(step);
    CHECK(batch.valid == 4);
    for (std::int64_t row = 0; row < 4; ++row) {
      CHECK(batch.images.data()[row] == Approx(static_cast<float>(batch.labels.data()[row]) / 255));
    }
    labels.insert(labels.end(), batch.labels.data(), batch.labels.data() + 4);
  }
  CHECK(std::set(labels.begin(), labels.begin() + 10).size() == 10);
  CHECK(std::set(labels.begin() + 10, labels.end()).size() == 10);
  CHECK_FALSE(std::equal(labels.begin(), labels.begin() + 10, labels.begin() + 10));
  const ImageBatch other = ImageLoader(numbered(10), {.batch = {.batch_size = 10, .seed = 4}}).load(0);
  CHECK_FALSE(std::equal(labels.begin(), labels.begin() + 10, other.labels.data()));
}

TEST_CASE("in their own order all images come exactly once, whatever the number of ranks") {
  for (const std::int64_t count : {1, 8, 13, 17}) {
    for (const int ranks : {1, 2, 4}) {
      for (const std::int64_t micro_batch_size : {1, 2}) {
        std::vector<std::int32_t> seen;
        for (std::int64_t step = 0; step < (count + 7) / 8; ++step) {
          for (int index = 0; index < ranks; ++index) {
            const ImageLoader loader(
                numbered(count),
                {.batch = {.batch_size = 8, .micro_batch_size = micro_batch_size, .index = index, .count = ranks},
                 .order = ImageOrder::sequential});
            REQUIRE(loader.steps_per_epoch() == (count + 7) / 8);
            for (std::int64_t micro_batch = 0; micro_batch < loader.num_micro_batches(); ++micro_batch) {
              const ImageBatch batch = loader.load(step, micro_batch);
              REQUIRE(batch.labels.dim(0) == micro_batch_size);
              for (std::int64_t row = 0; row < micro_batch_size; ++row) {
                if (row < batch.valid) {
                  seen.push_back(batch.labels.data()[row]);
                } else {
                  CHECK(batch.labels.data()[row] == no_label);
                  CHECK(batch.images.data()[row] == 0);
                }
              }
            }
          }
        }
        REQUIRE(std::ssize(seen) == count);
        for (std::int64_t i = 0; i < count; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
      }
    }
  }
  const ImageLoader loader(numbered(8), {.batch = {.batch_size = 8}, .order = ImageOrder::sequential});
  CHECK_THROWS_WITH(loader.load(1), ContainsSubstring("step 1 does not exist") && ContainsSubstring("1 steps"));
}

TEST_CASE("augmented samples do not depend on the number of ranks or the micro-batch size") {
  const ImageDataset dataset = images_of(20, {.height = 9, .width = 7, .channels = 3});
  const ImageLoaderOptions options{
      .batch = {.batch_size = 8, .seed = 9},
      .augmentation = {
          .crop_padding = 2, .horizontal_flip = true, .rotation = 15, .brightness = 0.3, .contrast = 0.2, .saturation = 0.5}};
  for (const std::int64_t step : {0, 2, 100}) {
    const ImageBatch whole = ImageLoader(dataset, options).load(step);
    for (const int count : {1, 2, 4}) {
      for (const std::int64_t micro_batch_size : {1, 2}) {
        std::vector<float> pixels;
        std::vector<std::int32_t> labels;
        for (int index = 0; index < count; ++index) {
          ImageLoaderOptions share = options;
          share.batch.micro_batch_size = micro_batch_size;
          share.batch.index = index;
          share.batch.count = count;
          const ImageLoader loader(dataset, share);
          for (std::int64_t micro_batch = 0; micro_batch < loader.num_micro_batches(); ++micro_batch) {
            const ImageBatch batch = loader.load(step, micro_batch);
            CHECK(batch.first_sample == 8 * step + std::ssize(labels));
            pixels.insert(pixels.end(), batch.images.span().begin(), batch.images.span().end());
            labels.insert(labels.end(), batch.labels.span().begin(), batch.labels.span().end());
          }
        }
        CHECK(std::ranges::equal(pixels, whole.images.span()));
        CHECK(std::ranges::equal(labels, whole.labels.span()));
      }
    }
  }
}

TEST_CASE("batches of images that grow are mixed within each step, alike on all ranks") {
  const ImageDataset dataset = images_of(20, {.height = 2, .width = 2, .channels = 1});
  ImageLoaderOptions options{.batch = {.batch_size = 4, .batch_size_from_step = {{1, 8}, {3, 12}}},
                             .augmentation = {.mixup_alpha = 1}};
  for (const std::int64_t step : {0, 1, 2, 3, 4}) {
    const ImageBatch whole = ImageLoader(dataset, options).load(step);
    const std::int64_t rows = whole.labels.numel();
    CHECK(rows == (step == 0 ? 4 : step < 3 ? 8 : 12));
    for (std::int64_t row = 0; row < rows; ++row) {
      CHECK(whole.partner_labels.data()[row] == whole.labels.data()[(row + rows - 1) % rows]);
    }
    std::vector<float> pixels;
    for (int index = 0; index < 2; ++index) {
      ImageLoaderOptions share = options;
      share.batch.index = index;
      share.batch.count = 2;
      share.batch.micro_batch_size = 1;
      const ImageLoader loader(dataset, share);
      for (std::int64_t micro_batch = 0; micro_batch < loader.num_micro_batches(); ++micro_batch) {
        const ImageBatch batch = loader.load(step, micro_batch);
        CHECK(batch.labels.numel() == rows / 4);
        pixels.insert(pixels.end(), batch.images.span().begin(), batch.images.span().end());
      }
    }
    CHECK(std::ranges::equal(pixels, whole.images.span()));
  }
  options.augmentation = {};
  options.order = ImageOrder::sequential;
  CHECK_THROWS_WITH(ImageLoader(dataset, options), ContainsSubstring("leave batch_size_from_step out"));
}

TEST_CASE("batches of images that cannot be shared equally are refused") {
  CHECK_THROWS_WITH(ImageLoader(numbered(9), {.batch = {.batch_size = 6, .count = 4}}), ContainsSubstring("multiple of 4"));
  CHECK_THROWS_WITH(ImageLoader(numbered(9), {.batch = {.batch_size = 6, .micro_batch_size = 4}}),
                    ContainsSubstring("micro-batches of 4"));
  CHECK_THROWS_WITH(ImageLoader(numbered(9).part(0, 0), {}), ContainsSubstring("without images"));
  CHECK_THROWS_WITH(ImageLoader(numbered(9), {}).load(-1), ContainsSubstring("numbered from 0"));
}
